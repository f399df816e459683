package config

import (
	"net/url"
	"regexp"
	"strings"
)

// secretQuery finds the parameters of a URL that look like keys to something.
var secretQuery = regexp.MustCompile(`(?i)([?&][^=&#]*(?:token|key|secret|pass|auth|sig)[^=&#]*=)[^&#]+`)

// hideSecrets takes user, password and keys out of a text that may be a URL, and
// rather too much where it is not a sound one.
func hideSecrets(s string) string {
	s = secretQuery.ReplaceAllString(s, "$1***")
	before, rest, isURL := strings.Cut(s, "://")
	if isURL {
		before += "://"
	} else {
		before, rest = "", s
	}
	end := strings.LastIndexByte(rest, '@')
	if end < 0 || !isURL && !strings.Contains(rest[:end], ":") {
		return s
	}
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		if u.User == nil {
			return s // the @ is in the path
		}
		authority, _, _ := strings.Cut(rest, "/")
		end = strings.LastIndexByte(authority, '@')
	}
	return before + "***" + rest[end:]
}

// nearest returns the one of words that s was likely meant to be, "" if none.
func nearest(s string, words []string) string {
	best, found := 1+min(2, len(s)/3), ""
	for _, word := range words {
		if d := distance(s, word); d < best {
			best, found = d, word
		}
	}
	return found
}

// distance is the number of characters to insert, delete, replace, or swap with
// their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
