package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// address is a text that is shown without its secrets.
func address(check func(string) error) kind[string] {
	return kind[string]{read: text(check).read, show: func(s string) any { return hideSecrets(s) }}
}

// sourceURL reads a list's address.
func sourceURL() kind[string] {
	return address(func(s string) error {
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "file":
			return errors.New("expected http://, https:// or file:///PATH")
		case u.Scheme == "file" && (u.Host != "" || len(u.Path) < 2 || u.RawQuery != ""):
			return errors.New("a file's address has three slashes: file:///PATH")
		case u.Scheme != "file" && !hostAndPort(u):
			return errors.New("has no sound host and port; write " + u.Scheme + "://HOST/PATH")
		}
		return nil
	})
}

// proxyURL reads the proxy that a list is fetched through; empty is none.
func proxyURL() kind[string] {
	return address(func(s string) error {
		if s == "" {
			return nil
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
			return errors.New("expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT")
		case !hostAndPort(u) || u.Port() == "":
			return fmt.Errorf("has no sound host and port; write %s://HOST:PORT", u.Scheme)
		case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return errors.New("has something behind host and port, which a proxy has no use for; remove it")
		}
		return nil
	})
}

// judgeURL reads the address at which a judge answers over the given scheme. A
// user and password in it would be shown to every proxy.
func judgeURL(want string) kind[*url.URL] {
	inner := parsed(func(s string) (*url.URL, error) {
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Scheme != want || !hostAndPort(u):
			return nil, fmt.Errorf("expected %s://HOST/PATH", want)
		case u.User != nil:
			return nil, errors.New("has a user, which every proxy would see; leave it out")
		case u.Fragment != "":
			return nil, errors.New("has a fragment (#), which is never sent; leave it out")
		}
		return u, nil
	})
	return kind[*url.URL]{read: inner.read, show: func(u *url.URL) any {
		if u == nil {
			return nil
		}
		return inner.show(u)
	}}
}

// targetURL reads a page's address.
func targetURL() kind[*url.URL] {
	plain, secure := judgeURL("http"), judgeURL("https")
	return kind[*url.URL]{read: func(v scalar) (*url.URL, error) {
		switch scheme, _, _ := strings.Cut(strings.ToLower(v.text), "://"); scheme {
		case "http":
			return plain.read(v)
		case "https":
			return secure.read(v)
		}
		return nil, errors.New("expected http://HOST/PATH or https://HOST/PATH")
	}, show: plain.show}
}

// anyStatus reads the status of an answer; 0 is any of 2xx.
func anyStatus() kind[int] {
	number := whole(200, 599)
	return kind[int]{read: func(v scalar) (int, error) {
		if v.text == "0" {
			return 0, nil
		}
		if n, err := number.read(v); err == nil {
			return n, nil
		}
		return 0, errors.New("expected 0 for any of 2xx, or a whole number from 200 to 599")
	}, show: number.show}
}

// redisURL reads the store's address. What else go-redis would take from a URL,
// its number of retries for one, is not for a user to set: an allocation would
// happen twice.
func redisURL() kind[string] {
	return address(func(s string) error {
		if s == "" {
			return nil
		}
		u, err := url.Parse(s)
		if err != nil || !slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) {
			return errors.New("expected redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB")
		}
		query := u.Query()
		if _, secret := u.User.Password(); secret || query.Has("password") {
			return errors.New("has a password; put it in a file and name that in redis.password_file")
		}
		if u.User != nil || query.Has("username") {
			return errors.New("has a user; put it in redis.username")
		}
		db := strings.Trim(u.Path, "/")
		if u.Scheme == "unix" {
			if u.Host != "" || len(u.Path) < 2 {
				return errors.New("a Unix socket's address has three slashes: unix:///PATH")
			}
			db = query.Get("db")
			query.Del("db")
		} else if !hostAndPort(u) {
			return fmt.Errorf("has no sound host and port; write %s://HOST:PORT/DB", u.Scheme)
		}
		if _, err := strconv.ParseUint(db, 10, 16); db != "" && err != nil {
			return errors.New("names no database; its number is a whole number")
		}
		if len(query) > 0 || u.Fragment != "" {
			return errors.New("has parameters that are not known; leave out what follows the ? or #")
		}
		return nil
	})
}

// hostAndPort reports whether u has a host and, if it has a port, a sound one.
func hostAndPort(u *url.URL) bool {
	if u.Opaque != "" || u.Hostname() == "" {
		return false
	}
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}
