package lab

import "maps"

// pending names the behaviours that the prober does not see rightly yet, and
// why. A lab that is told nothing leaves them out, and the test of the truth
// skips them; both end with the last line of this table.
var pending = map[Behaviour]string{
	// Columns of the truth, for all behaviours.
	"anonymity":    "what is found of anonymity",
	"capabilities": "what is found of capabilities",

	"https":                   "the scheme https",
	"https-password":          "the scheme https",
	"https-unknown-authority": "the scheme https",
	"https-wrong-name":        "the scheme https",
	"https-expired":           "the scheme https",
	"socks5-address":          "SOCKS 5 by address where a name is refused",
	"judge-only":              "a second judge",
	"forges-unsigned":         "signed answers",
	"forges-signed":           "signed answers",
	"replays":                 "signed answers",
	"edits-answer":            "signed answers",
	"injects-script":          "the page form",
	"blocks-ads":              "the page form",
}

// Pending returns the behaviours that the prober does not see rightly yet, and
// why.
func Pending() map[Behaviour]string { return maps.Clone(pending) }
