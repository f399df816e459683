package config

import (
	"net/url"

	"evenpool/sources/proxyurl"
)

// Judge is a web server that a probe asks through the proxy.
type Judge struct {
	// Name is unique among the judges: [a-z0-9][a-z0-9_-]{0,31}.
	Name string
	// HTTP and HTTPS are where it answers; nil where it does not. HTTP proves
	// "http", HTTPS proves "tls". At least one is set.
	HTTP, HTTPS *url.URL
	// KeyFile is a copy of the key with which `evenpool judge` signs its answers, as
	// `evenpool judge --new-key` writes it; readable by owner and group alone.
	// Default: empty, the judge signs nothing: what it says of a proxy over plain http
	// is claimed. With it an answer that is not signed is forged.
	KeyFile string
	// Expect is what a page of known content answers. Default: nil, the judge is
	// `evenpool judge`, whose answers carry the probe's nonce, or Echo.
	Expect *Expect
	// Echo describes somebody else's page that tells what it received. Default: nil.
	Echo *Echo
	// CAFile is a PEM file of roots that are trusted besides the system's, for
	// this judge alone: for a certificate that you signed yourself. Default: empty.
	CAFile string
	// AllowAddresses are the prefixes that may be dialled for this judge although
	// they are not public, such as a judge on loopback. Default: none.
	AllowAddresses proxyurl.Allow
}

// Expect is the known answer of a page.
type Expect struct {
	// Status is the HTTP status, from 200 to 599. Default: 200.
	Status int
	// Contains is a text that the body has within its first 64 KiB; from 1 to
	// 1,024 bytes. There is no default: a status alone proves nothing.
	Contains string
}

// Echo says how a page that tells what it received is read. What it says is
// claimed: a proxy could have written it.
type Echo struct {
	// Nonce is where the probe's nonce goes, which the page has to repeat:
	// "query:NAME" or "header:NAME". Default: query:nonce.
	Nonce string
	// Format is "json", or "env" for lines of NAME = VALUE as azenv.php writes them.
	// There is no default.
	Format string
	// Address is where the asker's address stands: keys "a.b" for json, else the
	// variable's name, REMOTE_ADDR. There is no default.
	Address string
	// Headers is where the headers stand: keys for json, else the prefix of the
	// variables' names, HTTP_. Default: empty, the page does not tell them, and shows
	// nothing of anonymity.
	Headers string
}
