package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"evenpool/sources/proxyurl"
)

// writer writes lists in one format.
type writer struct {
	name string
	// streamed says that a list need not be held in memory to be read.
	streamed   bool
	head, tail string
	between    string // between two records
	record     func(b *bytes.Buffer, p proxy)
}

// proxy is what a record says.
type proxy struct {
	n    int
	addr netip.Addr
	port int
}

func (p proxy) hostport() string { return fmt.Sprintf("%s:%d", p.addr, p.port) }

func (p proxy) country() (code, name string) {
	c := [...][2]string{{"BR", "Brazil"}, {"ID", "Indonesia"}, {"DE", "Germany"}, {"VN", "Vietnam"}, {"US", "United States"}}[p.n%5]
	return c[0], c[1]
}

func (p proxy) anonymity() string { return [...]string{"transparent", "anonymous", "elite"}[p.n%3] }

// invented returns the n-th proxy: a public address that no other one has, and a
// port, both the same in every run. The addresses are spread as those of lists
// are, not counted up.
func invented(n int) proxy {
	ports := [...]int{80, 8080, 3128, 1080, 4145, 5678, 8888, 10808, 41890, 51377}
	bits := uint32(n) * 2654435761 // odd, so no two of 2^32 are the same (Knuth's multiplicative hash)
	addr := netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)})
	return proxy{n: n, addr: addr, port: ports[n%len(ports)]}
}

// list writes at most so many records and bytes, and returns how many it wrote.
func (w writer) list(records, size int) (text []byte, n int) {
	var b bytes.Buffer
	b.WriteString(w.head)
	for i := 1; n < records; i++ {
		p := invented(i)
		if _, forbidden := proxyurl.Forbidden(p.addr); forbidden {
			continue
		}
		before := b.Len()
		if n > 0 {
			b.WriteString(w.between)
		}
		w.record(&b, p)
		if b.Len()+len(w.tail) > size {
			b.Truncate(before)
			break
		}
		n++
	}
	b.WriteString(w.tail)
	return b.Bytes(), n
}

func plain() writer {
	return writer{name: "plain", streamed: true, record: func(b *bytes.Buffer, p proxy) { fmt.Fprintln(b, p.hostport()) }}
}

// writers lists every way in which lists are written.
func writers() []writer {
	lines := func(name, head string, record func(p proxy) string) writer {
		return writer{name: name, streamed: true, head: head, record: func(b *bytes.Buffer, p proxy) { fmt.Fprintln(b, record(p)) }}
	}
	object := func(p proxy) string {
		code, _ := p.country()
		return fmt.Sprintf(`{"ip":"%s","port":%d,"protocol":"http","country":"%s","anonymity":"%s","exit_ip":"1.2.3.4"}`, p.addr, p.port, code, p.anonymity())
	}
	return []writer{
		plain(),
		lines("scheme", "", func(p proxy) string { return "socks5://" + p.hostport() }),
		lines("user-behind", "", func(p proxy) string { return fmt.Sprintf("%s:user%d:pa55word", p.hostport(), p.n) }),
		lines("user-before", "", func(p proxy) string { return fmt.Sprintf("user%d:pa55word@%s", p.n, p.hostport()) }),
		lines("colon-country", "", func(p proxy) string {
			_, name := p.country()
			return p.hostport() + ":" + name
		}),
		lines("pipe", "", func(p proxy) string {
			_, name := p.country()
			return p.hostport() + "|" + name + "|Region|City"
		}),
		lines("annotated", "Proxy list updated at Mon, 02 Jan 23 03:04:05 +0300\n\n", func(p proxy) string {
			code, _ := p.country()
			return p.hostport() + " " + code + "-N-S! +"
		}),
		lines("emoji", "Proxy list updated at 2023-01-02 03:04:05\n\n", func(p proxy) string {
			code, _ := p.country()
			return fmt.Sprintf("🇧🇷 %s %dms %s [Some Network]", p.hostport(), 100+p.n%900, code)
		}),
		lines("csv-header", "ip,port,country,anonymity,https,speed\n", func(p proxy) string {
			code, _ := p.country()
			return fmt.Sprintf("%s,%d,%s,%s,false,%d", p.addr, p.port, code, p.anonymity(), p.n%1000)
		}),
		lines("csv-no-header", "", func(p proxy) string {
			_, name := p.country()
			return fmt.Sprintf("%s,%d,%s,%s,HTTP/HTTPS", p.addr, p.port, name, p.anonymity())
		}),
		lines("csv-flags", "host;ip;port;country_code;city;anon;http;ssl;socks4;socks5\n", func(p proxy) string {
			code, _ := p.country()
			return fmt.Sprintf("%s;%s;%d;%s;;4;1;0;0;0", p.addr, p.addr, p.port, code)
		}),
		lines("jsonl", "", object),
		{name: "json", streamed: true, head: "[", between: ",", tail: "]", record: func(b *bytes.Buffer, p proxy) { b.WriteString(object(p)) }},
		{name: "json-strings", streamed: true, head: "[", between: ",", tail: "]", record: func(b *bytes.Buffer, p proxy) { fmt.Fprintf(b, `"%s"`, p.hostport()) }},
		{name: "json-nested", streamed: true, head: `{"total":1,"data":[`, between: ",", tail: "]}", record: func(b *bytes.Buffer, p proxy) { b.WriteString(object(p)) }},
		{name: "yaml", streamed: true, head: "proxies:\n", record: func(b *bytes.Buffer, p proxy) {
			fmt.Fprintf(b, "    - category: HTTPS\n      ip: %s\n      port: %d\n", p.addr, p.port)
		}},
		{name: "xml", streamed: true, head: "<Proxies>", tail: "</Proxies>", record: func(b *bytes.Buffer, p proxy) {
			fmt.Fprintf(b, "<Proxy><Category>HTTP</Category><IP>%s</IP><Port>%d</Port><TimeTaken>0</TimeTaken></Proxy>", p.addr, p.port)
		}},
		{name: "html", streamed: true, head: "<!DOCTYPE html><html><body><table><thead><tr><th>IP Address</th><th>Port</th><th>Code</th><th>Anonymity</th><th>Https</th></tr></thead><tbody>\n",
			tail: "</tbody></table></body></html>\n", record: func(b *bytes.Buffer, p proxy) {
				code, _ := p.country()
				fmt.Fprintf(b, "<tr><td>%s</td><td>%d</td><td>%s</td><td>%s proxy</td><td>no</td></tr>\n", p.addr, p.port, code, strings.ToLower(p.anonymity()))
			}},
	}
}
