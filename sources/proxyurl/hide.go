package proxyurl

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// credentials is what stands behind the name of the header, in whatever form the
// header is repeated.
var credentials = regexp.MustCompile(`(?i)(proxy.authorization[^a-z\r\n]{0,8}[a-z]+[ +])[^\s"',<}\]]+`)

// Hide puts *** in place of the endpoint's password in what was said to it or by it:
// as it is, in Basic credentials (RFC 7617), and whatever stands in a
// Proxy-Authorization. Where a text was cut, the beginning of a secret at its end goes,
// too. It is to be escaped behind that.
func (e Endpoint) Hide(text string, cut bool) string {
	secrets := e.secrets()
	for _, secret := range secrets {
		for n := len(secret) - 1; cut && n > 0; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n]
				break
			}
		}
	}
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return credentials.ReplaceAllString(text, "${1}***")
}

// secrets are the forms in which a proxy is told its password, the longest first.
func (e Endpoint) secrets() (list []string) {
	if e.HasUser() {
		list = append(list, base64.StdEncoding.EncodeToString([]byte(e.User()+":"+e.Password())))
	}
	if e.Password() != "" {
		list = append(list, e.Password())
	}
	return list
}
