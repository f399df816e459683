package config

import "strconv"

// Percent is a whole share in hundredths, from 0 to 100.
type Percent int

// String returns it as the file has it, such as "20%".
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// Of returns that share of n, rounded down.
func (p Percent) Of(n int) int { return n * int(p) / 100 }
