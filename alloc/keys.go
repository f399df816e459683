package alloc

// keys are the names of a pool's keys in Redis, all of them. The braces keep a pool in one slot of
// a cluster. None has a TTL.
type keys struct {
	// eligible is a sorted set: member URL -> count. All that an allocation touches.
	eligible string
	// retired is a hash: endpoint -> COUNT|MS, the count it was retired with, and when.
	retired string
	// record is a hash: endpoint -> VERSION|JSON, what is known of it. The scripts read VERSION only.
	record string
	// due is a sorted set: endpoint -> when it is to be probed next, in ms since the epoch.
	due string
	// events is a stream: every change of eligible.
	events string
	// named is a sorted set: endpoint -> when something last spoke for it, in ms since the epoch: a list
	// named it, it was a member when a cycle began, or, where that was looked at, it passed a probe.
	// Whoever is in record is in here. What nothing speaks for is forgotten in time.
	named string
	// meta is a hash: schema, generation, created_ms, emptied_min, and what SetMeta puts there.
	meta string
	// reports is a hash: endpoint of a member -> OK|FAILED|BLOCKED|MS|MS|TARGET=N,...: what workers said.
	reports string
}

const keyPrefix = "evenpool:{"

func keysOf(pool string) keys {
	prefix := keyPrefix + pool + "}:"
	return keys{
		eligible: prefix + "eligible",
		retired:  prefix + "retired",
		record:   prefix + "record",
		due:      prefix + "due",
		events:   prefix + "events",
		named:    prefix + "named",
		meta:     prefix + "meta",
		reports:  prefix + "reports",
	}
}

// all gives the keys in the order of the fields above.
func (k keys) all() []string {
	return []string{k.eligible, k.retired, k.record, k.due, k.events, k.named, k.meta, k.reports}
}
