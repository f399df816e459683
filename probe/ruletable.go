package probe

// The names of rules, as reasons have them. Those that a configuration has are
// named as they are there; a key that names a file has _file behind that.
const (
	ruleSchemes        = "schemes"
	ruleBanned         = "banned"
	ruleNetworks       = "networks"
	ruleNotNetworks    = "not_networks"
	rulePorts          = "ports"
	ruleSafety         = "safety"
	ruleQuarantine     = "quarantine"
	ruleControl        = "control"
	ruleRequired       = "require" // and what is required
	ruleMinJudges      = "min_judges"
	ruleAnonymity      = "anonymity"
	ruleExitCountries  = "exit_countries"
	ruleNotCountries   = "not_countries"
	ruleExitASNs       = "exit_asns"
	ruleNotASNs        = "not_asns"
	ruleTargets        = "require_targets"
	ruleMaxLatency     = "max_latency"
	ruleMinSuccess     = "min_success"
	ruleMaxExitChanges = "max_exit_changes"
	ruleMaxAge         = "max_age"
	ruleRise           = "rise"
	ruleFall           = "fall"
)

func ruleRequire(c Capability) string { return ruleRequired + " " + string(c) }

// Acts says how fast a rule that is broken takes effect.
type Acts string

// The ways of acting; Says says what each means.
const (
	ActsAtOnce      Acts = "at once"
	ActsByFall      Acts = "by fall"
	ActsOnAdmission Acts = "on admission"
	ActsOnMembers   Acts = "on members"
	ActsNever       Acts = "never"
)

// AllActs returns the closed list, the fastest first.
func AllActs() []Acts {
	return []Acts{ActsAtOnce, ActsByFall, ActsOnAdmission, ActsOnMembers, ActsNever}
}

// Says is what it means for whom it applies to, without a full stop.
func (a Acts) Says() string {
	switch a {
	case ActsAtOnce:
		return "who breaks it is neither probed nor admitted, and a member is retired with its next turn, whatever the guard says"
	case ActsByFall:
		return "a round that breaks it is a failure; enough in a row for the rule fall retire a member, within what the guard allows"
	case ActsOnAdmission:
		return "it keeps others from becoming members, and members are not measured by it"
	case ActsOnMembers:
		return "it retires members, within what the guard allows"
	case ActsNever:
		return "it admits and retires nobody; it only sets rounds aside"
	}
	return ""
}

// RuleInfo describes a rule.
type RuleInfo struct {
	Name  string // in reasons
	Key   string // in the configuration, below eligibility; "" for a rule of every pool
	Needs string // what must be there for it to be known
	Acts  Acts
}

// RuleTable returns all rules, in the order in which they are looked at and shown:
// what needs no probe, what is about safety, what one round shows, what several
// rounds show, and the runs. No rule about speed comes before the last one about
// what a proxy does (RELIABILITY H9): the fastest are often those that tamper.
func RuleTable() []RuleInfo {
	return []RuleInfo{
		{ruleSchemes, "schemes", "nothing; which of them works is found out by probing", ActsAtOnce},
		{ruleBanned, "banned_file", "nothing; a name's address is looked at when it is dialled", ActsAtOnce},
		{ruleNetworks, "networks", "nothing; a name's address is looked at when it is dialled", ActsAtOnce},
		{ruleNotNetworks, "not_networks", "nothing for its own address; for its exit, which acts by fall, a judge that tells it", ActsAtOnce},
		{rulePorts, "ports", "nothing", ActsAtOnce},
		{ruleQuarantine, "quarantine", "nothing", ActsAtOnce},
		{ruleSafety, "", "a probe", ActsAtOnce},
		{ruleControl, "", "the judge's answers before and after the slice", ActsNever},
		{ruleRequired, "require", "a judge that shows it", ActsByFall},
		{ruleMinJudges, "min_judges", "so many judges that are well", ActsOnAdmission},
		{ruleAnonymity, "anonymity", "a judge on http that tells the headers, and signs unless claimed is enough; and our own addresses", ActsByFall},
		{ruleExitCountries, "exit_countries", "a judge that tells the exit, and geoip.country", ActsByFall},
		{ruleNotCountries, "not_countries", "a judge that tells the exit, and geoip.country", ActsByFall},
		{ruleExitASNs, "exit_asns", "a judge that tells the exit, and geoip.asn", ActsByFall},
		{ruleNotASNs, "not_asns", "a judge that tells the exit, and geoip.asn", ActsByFall},
		{ruleTargets, "require_targets", "the target's turn", ActsByFall},
		{ruleMaxLatency, "max_latency", "a round that worked", ActsByFall},
		{ruleMinSuccess, "min_success", "a round that told anything", ActsByFall},
		{ruleMaxExitChanges, "max_exit_changes", "a judge that tells the exit", ActsByFall},
		{ruleMaxAge, "max_age", "nothing", ActsOnMembers},
		{ruleRise, "rise", "rounds that passed", ActsOnAdmission},
		{ruleFall, "fall", "rounds that failed", ActsOnMembers},
	}
}
