package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"evenpool/alloc"
	"evenpool/sources/proxyurl"
)

// The kinds of values that keys.go uses. Their errors are sentences for problems:
// "expected X" or "does Y; write Z".

// text reads a text that check accepts.
func text(check func(string) error) kind[string] {
	return kind[string]{
		read: func(v scalar) (string, error) {
			if !v.isText() {
				return "", fmt.Errorf(`expected a text; write it in quotes: "%s"`, v.text)
			}
			return v.text, check(v.text)
		},
		show: func(s string) any { return s },
	}
}

func between(least, most int) func(string) error {
	return func(s string) error {
		if len(s) < least || len(s) > most {
			return fmt.Errorf("expected a text of %d to %d bytes", least, most)
		}
		return nil
	}
}

// parsed is a text that becomes another type, which String turns back.
func parsed[T fmt.Stringer](parse func(string) (T, error)) kind[T] {
	raw := text(func(string) error { return nil })
	return kind[T]{
		read: func(v scalar) (t T, err error) {
			if _, err = raw.read(v); err != nil {
				return t, err
			}
			return parse(v.text)
		},
		show: func(t T) any { return t.String() },
	}
}

func name() kind[string] {
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
	return text(func(s string) error {
		if !form.MatchString(s) {
			return errors.New("is not a name; write 1 to 32 of a-z, 0-9, _ and -, the first a letter or digit")
		}
		return nil
	})
}

// maxPathBytes is what Linux takes (PATH_MAX, less the zero).
const maxPathBytes = 4095

// filePath reads a path of least to most bytes.
func filePath(least, most int) kind[string] {
	return text(func(s string) error {
		switch {
		case len(s) < least:
			return errors.New("is empty; write a path")
		case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }):
			return errors.New("has control characters; write a path")
		case len(s) > most:
			return fmt.Errorf("is %d bytes long; write a path of at most %d", len(s), most)
		}
		return nil
	})
}

func whole(least, most int) kind[int] {
	return kind[int]{
		read: func(v scalar) (int, error) {
			n, err := strconv.Atoi(v.text)
			if v.isText() && err == nil {
				return 0, errors.New("expected a number; write it without quotes")
			}
			if v.kind != ast.IntegerType || err != nil || n < least || n > most {
				return 0, fmt.Errorf("expected a whole number from %d to %d", least, most)
			}
			return n, nil
		},
		show: func(n int) any { return n },
	}
}

// mode reads permission bits in octal, in quotes or not.
func mode() kind[fs.FileMode] {
	return kind[fs.FileMode]{
		read: func(v scalar) (fs.FileMode, error) {
			n, err := strconv.ParseUint(strings.TrimPrefix(v.text, "0o"), 8, 32)
			if err != nil || n == 0 || n > 0o777 {
				return 0, errors.New("expected permission bits such as 0660")
			}
			return fs.FileMode(n), nil
		},
		show: func(m fs.FileMode) any { return fmt.Sprintf("%04o", m) },
	}
}

// duration reads a time with a unit from least to most; 0 needs none.
func duration(least, most time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		read: func(v scalar) (time.Duration, error) {
			d, err := time.ParseDuration(v.text)
			switch {
			case v.kind == ast.IntegerType && v.text != "0":
				return 0, fmt.Errorf("a duration needs a unit; write %ss or %sm", v.text, v.text)
			case err != nil:
				return 0, errors.New("expected a duration with a unit, such as 8s, 5m or 168h")
			case d < least || d > most:
				return 0, fmt.Errorf("expected a duration from %s to %s", short(least), short(most))
			}
			return d, nil
		},
		show: func(d time.Duration) any { return short(d) },
	}
}

// short is d.String without its zero parts: 168h for 168h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func percent() kind[Percent] {
	return kind[Percent]{
		read: func(v scalar) (Percent, error) {
			digits, sign := strings.CutSuffix(v.text, "%")
			n, err := strconv.ParseUint(digits, 10, 8)
			switch {
			case err != nil || n > 100:
				return 0, errors.New("expected a whole percentage from 0% to 100%, such as 20%")
			case !sign:
				return 0, fmt.Errorf("a percentage needs its sign; write %d%%", n)
			}
			return Percent(n), nil
		},
		show: func(p Percent) any { return p.String() },
	}
}

// scheme reads one of the schemes allowed; empty is none where that is allowed.
func scheme(allowed []proxyurl.Scheme, empty bool) kind[proxyurl.Scheme] {
	return kind[proxyurl.Scheme]{
		read: func(v scalar) (proxyurl.Scheme, error) {
			if empty && v.isText() && v.text == "" {
				return "", nil
			}
			s, err := proxyurl.ParseScheme(v.text)
			if strings.EqualFold(v.text, string(proxyurl.Any)) {
				s, err = proxyurl.Any, nil
			}
			if err == nil && slices.Contains(allowed, s) {
				return s, nil
			}
			return "", fmt.Errorf("expected one of %s", join(allowed))
		},
		show: func(s proxyurl.Scheme) any { return string(s) },
	}
}

// prefix reads addresses that a source or a judge opens; a bare address is the
// prefix of it alone.
func prefix() kind[netip.Prefix] {
	return parsed(func(s string) (netip.Prefix, error) {
		if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" && !addr.Is4In6() {
			return netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		p, err := netip.ParsePrefix(s)
		switch {
		case err != nil || p.Addr().Is4In6():
			return netip.Prefix{}, errors.New("expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8")
		case p != p.Masked():
			return netip.Prefix{}, fmt.Errorf("has bits behind the prefix; write %s, or %s for the address alone", p.Masked(), p.Addr())
		}
		return p, nil
	})
}

// member reads a text of a closed list.
func member[T ~string](allowed []T) kind[T] {
	return kind[T]{
		read: func(v scalar) (T, error) {
			if t := T(v.text); slices.Contains(allowed, t) {
				return t, nil
			}
			return "", fmt.Errorf("expected one of %s", join(allowed))
		},
		show: func(t T) any { return string(t) },
	}
}

// policy reads a start or restore policy; a number may be written as one.
func policy(parse func(string) (alloc.Policy, error), words string) kind[alloc.Policy] {
	return kind[alloc.Policy]{
		read: func(v scalar) (alloc.Policy, error) {
			p, err := parse(v.text)
			if err != nil {
				return "", fmt.Errorf("expected one of %s, or a whole number from 0 to 2^52 (%d)", words, int64(alloc.MaxCount))
			}
			return p, nil
		},
		show: func(p alloc.Policy) any { return string(p) },
	}
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}
