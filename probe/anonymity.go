package probe

// Anonymity is how much of its user a proxy gives away: "" is unknown.
type Anonymity string

// The levels, from low to high.
const (
	Transparent Anonymity = "transparent"
	Anonymous   Anonymity = "anonymous"
	Elite       Anonymity = "elite"
)
