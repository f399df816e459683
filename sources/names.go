package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// role is what a column, a key or an element says of a proxy.
type role uint8

const (
	roleNone         role = iota
	roleIP                // an address; goes before a host where there are both
	roleHost              // an address or a name
	rolePort              // one port, or several
	roleAddress           // "host:port" or "scheme://host:port"
	roleURL               // the same, or a page that has nothing to do with it
	roleProtocol          // one scheme, or several
	roleType              // the same, or something else that lists call a type
	roleTLS               // whether the proxy is good for https
	roleProtocolFlag      // whether the proxy speaks the protocol of this name, or its address
	roleUser              //
	rolePassword          //
	roleCountry           //
	roleCode              // a country's code
	roleAnonymity         //
	rolePlace             // an object that says where the proxy is
	roleList              // an array or object of records
	roleDecoy             // what is no proxy though it looks like one
)

// roles is what all lists together call things, written as normal does.
var roles = map[string]role{
	"ip": roleIP, "ipaddress": roleIP, "ipaddr": roleIP, "ipv4": roleIP, "ipv4address": roleIP, "address": roleIP,
	"addr": roleIP, "proxyip": roleIP, "serverip": roleIP, "ipadress": roleIP, "adress": roleIP,
	"host": roleHost, "hostname": roleHost, "server": roleHost, "domain": roleHost, "proxyhost": roleHost, "dns": roleHost,
	"port": rolePort, "ports": rolePort, "proxyport": rolePort, "portnumber": rolePort,
	"proxy": roleAddress, "proxyaddress": roleAddress, "ipport": roleAddress, "hostport": roleAddress, "addrport": roleAddress,
	"addressport": roleAddress, "ipaddressport": roleAddress, "proxyipport": roleAddress, "endpoint": roleAddress,
	"proxyurl": roleAddress, "proxyserver": roleAddress, "ipandport": roleAddress, "connection": roleAddress,
	"url": roleURL, "uri": roleURL,
	"protocol": roleProtocol, "protocols": roleProtocol, "proto": roleProtocol, "scheme": roleProtocol, "schemes": roleProtocol,
	"protocoltype": roleProtocol, "proxyprotocol": roleProtocol, "proxyprotocols": roleProtocol,
	"type": roleType, "types": roleType, "category": roleType, "proxytype": roleType, "kind": roleType,
	"ssl": roleTLS, "supporthttps": roleTLS, "supportshttps": roleTLS, "httpssupport": roleTLS, "supportssl": roleTLS,
	"supportsssl": roleTLS, "ishttps": roleTLS, "isssl": roleTLS,
	"user": roleUser, "username": roleUser, "login": roleUser,
	"password": rolePassword, "pass": rolePassword, "passwd": rolePassword, "pwd": rolePassword,
	"country": roleCountry, "countryname": roleCountry, "countryregion": roleCountry, "geo": roleCountry,
	"countrycode": roleCode, "code": roleCode, "cc": roleCode, "isocode": roleCode, "countryisocode": roleCode,
	"countryiso": roleCode, "iso": roleCode, "alpha2": roleCode, "isoalpha2": roleCode, "countrycode2": roleCode,
	"anonymity": roleAnonymity, "anonymitylevel": roleAnonymity, "anon": roleAnonymity, "anonlevel": roleAnonymity,
	"level": roleAnonymity, "anonymous": roleAnonymity, "anonymitytype": roleAnonymity, "anonymitylvl": roleAnonymity,
	"location": rolePlace, "geolocation": rolePlace, "geoip": rolePlace, "geodata": rolePlace, "ipdata": rolePlace,
	"ipinfo": rolePlace, "place": rolePlace,
	"proxies": roleList, "proxylist": roleList, "data": roleList, "list": roleList, "items": roleList, "results": roleList,
	"result": roleList, "rows": roleList, "records": roleList, "entries": roleList, "servers": roleList, "response": roleList,
	"payload": roleList, "docs": roleList, "hits": roleList, "nodes": roleList, "output": roleList, "content": roleList,
	"working": roleList, "alive": roleList, "online": roleList, "lists": roleList, "ips": roleList, "addresses": roleList,
}

// decoys begin the names of what is an address and no proxy (where the proxy's
// requests come from, examples), and of what names proxies of the list once more.
var decoys = []string{"exit", "export", "egress", "outgoing", "outbound", "example", "sample", "proxygroup", "proxyprovider"}

// roleOf returns what a name stands for.
func roleOf(name string) role {
	name = normal(name)
	if r, ok := roles[name]; ok {
		return r
	}
	if protocols[name] != 0 {
		return roleProtocolFlag
	}
	for _, decoy := range decoys {
		if strings.HasPrefix(name, decoy) {
			return roleDecoy
		}
	}
	return roleNone
}

// maxName bounds a name that stands for anything.
const maxName = 64

// normal takes from a name what writers of names do not agree on: capitals,
// spaces and signs.
func normal(name string) string {
	var room [maxName]byte
	return string(appendNormal(room[:0], name))
}

// appendNormal is normal for a look into a map, which then takes no text to be made.
func appendNormal(to []byte, name string) []byte {
	if len(name) > maxName {
		return to
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', isDigit(c):
			to = append(to, c)
		case c >= 'A' && c <= 'Z':
			to = append(to, c+'a'-'A')
		}
	}
	return to
}

// protocols is what lists call protocols, written as normal does.
var protocols = map[string]claims{
	"http": claimOf(proxyurl.HTTP), "https": claimOf(proxyurl.HTTPS), "socks4": claimOf(proxyurl.SOCKS4),
	"socks4a": claimOf(proxyurl.SOCKS4A), "socks5": claimOf(proxyurl.SOCKS5), "socks5h": claimOf(proxyurl.SOCKS5),
	"socksv4": claimOf(proxyurl.SOCKS4), "socksv5": claimOf(proxyurl.SOCKS5), "connect": claimOf(proxyurl.HTTP),
	"httpconnect": claimOf(proxyurl.HTTP), "socks45": claimOf(proxyurl.SOCKS4) | claimOf(proxyurl.SOCKS5),
	// One proxy that takes CONNECT, not two kinds of it.
	"httphttps": claimOf(proxyurl.HTTP), "httpshttp": claimOf(proxyurl.HTTP),
}

// foreign is what else lists call protocols: evenpool does not speak these.
var foreign = map[string]bool{
	"vmess": true, "vless": true, "trojan": true, "ss": true, "ssr": true, "shadowsocks": true, "hysteria": true, "hysteria2": true,
	"hy2": true, "tuic": true, "wireguard": true, "snell": true, "anytls": true, "mtproto": true, "openvpn": true, "ssh": true,
}

// claimsOf reads a protocol's name, or several of them: "HTTP", "socks4, socks5",
// "HTTP/HTTPS". known is false where a part is no protocol.
func claimsOf(text string) (named claims, known bool) {
	if len(text) > 60 {
		return 0, false
	}
	text = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), " / ", "/"), "(S)", "/https")
	if !strings.ContainsAny(text, ",;|+& ") { // one word, or joined by a slash
		if named, known = protocolOf(text); known {
			return named, true
		}
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;|+&/ ", r) }) {
		one, ok := protocolOf(part)
		if !ok {
			return 0, false
		}
		named |= one
	}
	return named, named != 0
}

func protocolOf(word string) (named claims, known bool) {
	if !onlyWord(word) {
		return 0, false
	}
	var room [maxName]byte
	named, known = protocols[string(appendNormal(room[:0], word))]
	return named, known
}

// onlyWord says whether a text is written with what names of protocols are: normal
// would make one of "h-t/t.p", too.
func onlyWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !(r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("/-_", r))
	}) < 0
}

// flag reads yes or no; known is false for all else.
func flag(text string) (yes, known bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "yes", "y", "+", "on", "✓", "✔", "✅":
		return true, true
	case "0", "false", "no", "n", "-", "off", "", "✗", "✘", "❌", "null":
		return false, true
	}
	return false, false
}
