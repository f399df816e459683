package proxyurl

import (
	"errors"
	"strings"
	"testing"
)

// TestL2_OneMeaningPerAddress holds the one right outcome for each way in which
// an address can be written: a canonical text, or the reason of its refusal.
func TestL2_OneMeaningPerAddress(t *testing.T) {
	long := strings.Repeat("a", 255)
	for _, c := range []struct {
		text string
		want string // canonical
		why  Reason
	}{
		// IPv4
		{text: "1.2.3.4:80", want: "1.2.3.4:80"},
		{text: "255.255.255.255:65535", want: "255.255.255.255:65535"},
		{text: "01.2.3.4:80", why: ReasonLeadingZero},
		{text: "1.2.3.04:80", why: ReasonLeadingZero},
		{text: "1.2.3.00:80", why: ReasonLeadingZero},
		{text: "001.002.003.004:80", why: ReasonLeadingZero},
		{text: "0.2.3.4:80", want: "0.2.3.4:80"}, // well-formed; whether it may be dialled is asked elsewhere
		{text: "1.2.3.256:80", why: ReasonHost},
		{text: "1.2.3.999:80", why: ReasonHost},
		{text: "01.2.3.999:80", why: ReasonHost},
		{text: "1.2.3:80", why: ReasonHost},
		{text: "127.1:80", why: ReasonHost},
		{text: "1.2.3.4.5:80", why: ReasonHost},
		{text: "1.2.3.4.:80", why: ReasonHost},
		{text: ".1.2.3.4:80", why: ReasonHost},
		{text: "1..3.4:80", why: ReasonHost},
		{text: "2130706433:80", why: ReasonHost},
		{text: "0x7f.0.0.1:80", why: ReasonHost},
		{text: "0x7f000001:80", why: ReasonHost},
		{text: "0177.0.0.1:80", why: ReasonLeadingZero},
		{text: "1.2.3.0x4:80", why: ReasonHost},
		{text: "+1.2.3.4:80", why: ReasonHost},
		{text: "-1.2.3.4:80", why: ReasonHost},
		{text: " 1.2.3.4:80", why: ReasonHost},
		{text: "1.2.3.4 :80", why: ReasonHost},
		{text: "1.2.3.4\x00:80", why: ReasonHost},
		{text: "1.2.3.4/24:80", why: ReasonHost},
		{text: "１.2.3.4:80", why: ReasonHost}, // full-width 1
		{text: "1。2。3。4:80", why: ReasonHost}, // ideographic full stop
		{text: "٣.2.3.4:80", why: ReasonHost}, // Arabic-Indic 3
		{text: "1.2.3.۴:80", why: ReasonHost}, // Persian 4
		{text: "1.2.3.²:80", why: ReasonHost}, // superscript 2
		{text: "1.2.3.𝟒:80", why: ReasonHost}, // mathematical bold 4
		{text: "1․2․3․4:80", why: ReasonHost}, // one dot leader
		{text: "127.0.1:80", why: ReasonHost},
		{text: "1:80", why: ReasonHost},
		{text: "017700000001:80", why: ReasonHost},
		{text: "0x7f.1:80", why: ReasonHost},
		{text: "0X7F.0.0.1:80", why: ReasonHost},
		{text: "127.0.0.0x1:80", why: ReasonHost},
		{text: "0300.0250.0.1:80", why: ReasonHost}, // octal for 192.168.0.1; as decimals no address either
		{text: "08.8.8.8:80", why: ReasonLeadingZero},
		{text: "00.0.0.0:80", why: ReasonLeadingZero},
		{text: "000000001.2.3.4:80", why: ReasonLeadingZero},
		{text: "4294967296:80", why: ReasonHost},
		{text: "1.2.3.4%eth0:80", why: ReasonHost},
		{text: "1.2.3.4%2e:80", why: ReasonHost},
		{text: "%31.2.3.4:80", why: ReasonHost},
		{text: "1%2e2%2e3%2e4:80", why: ReasonHost},
		{text: "1.2.3.4%3A80", why: ReasonUnparseable},
		{text: "1,2,3,4:80", why: ReasonHost},
		{text: "1-2-3-4:80", why: ReasonHost},
		{text: "\"1.2.3.4\":80", why: ReasonHost},
		// glued, cut and mixed up
		{text: "1.2.3.41.2.3.5:80", why: ReasonHost},
		{text: "1.2.3.4:801.2.3.5:80", why: ReasonUnparseable},
		{text: "1.2.3.4:8080.2.3.5", why: ReasonPort},
		{text: "1.2.3.4:80,1.2.3.5:80", why: ReasonUnparseable},
		{text: "1.2.3.4:80;", why: ReasonPort},
		{text: "1.2.3.4 80", why: ReasonUnparseable},
		{text: "1.2.3.4\t80", why: ReasonUnparseable},
		{text: "1.2.3.4::80", why: ReasonUnparseable},
		{text: "1.2.3.4;80", why: ReasonUnparseable},
		{text: "80:1.2.3.4", why: ReasonPort},
		{text: "//1.2.3.4:80", why: ReasonHost},
		// what cannot be seen
		{text: "\ufeff1.2.3.4:80", why: ReasonHost}, // BOM
		{text: "1.2.3.4\ufeff:80", why: ReasonHost},
		{text: "1.2.3.4:80\ufeff", why: ReasonPort},
		{text: "\u200b1.2.3.4:80", why: ReasonHost}, // zero-width space
		{text: "1.2.3\u200b.4:80", why: ReasonHost},
		{text: "1.2.3.4:8\u200d0", why: ReasonPort}, // zero-width joiner
		{text: "\u202e1.2.3.4:80", why: ReasonHost}, // right-to-left override
		{text: "1.2.3.4:\u206680", why: ReasonPort}, // left-to-right isolate
		{text: "1.2.3.4:80\u00a0", why: ReasonPort}, // no-break space
		{text: "1\u00ad.2.3.4:80", why: ReasonHost}, // soft hyphen
		{text: "1.2.3.4\r:80", why: ReasonHost},
		{text: "1.2.3.4:80\r", why: ReasonPort},
		{text: "1.2.3.4:80\n", why: ReasonPort},
		{text: "1.2.3.4:80\r\nHost: a.example", why: ReasonUnparseable},
		{text: "1.2.3.4:80\x00", why: ReasonPort},
		{text: "\t1.2.3.4:80", why: ReasonHost},
		{text: "1.2.3.4:80\t", why: ReasonPort},
		{text: "1.2.3.4\x1b[0m:80", why: ReasonUnparseable},
		{text: "1.2.3.4\xa0:80", why: ReasonHost}, // Latin-1, no UTF-8
		{text: "\xff\xfe1.2.3.4:80", why: ReasonHost},
		{text: "[1.2.3.4]:80", why: ReasonUnparseable},
		// IPv6
		{text: "[2606:4700::1]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700:0:0:0:0:0:1]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700:0000::0001]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700::ABCD]:80", want: "[2606:4700::abcd]:80"},
		{text: "[::ffff:1.2.3.4]:80", want: "1.2.3.4:80"},
		{text: "[::ffff:102:304]:80", want: "1.2.3.4:80"},
		{text: "[0:0:0:0:0:FFFF:1.2.3.4]:80", want: "1.2.3.4:80"},
		{text: "[::ffff:1.2.3.04]:80", why: ReasonHost},
		{text: "[fe80::1%eth0]:80", why: ReasonHost},
		{text: "[fe80::1%25eth0]:80", why: ReasonHost},
		{text: "[::ffff:1.2.3.4%eth0]:80", why: ReasonHost},
		{text: "[2606:4700::1::2]:80", why: ReasonHost},
		{text: "[2606:4700::12345]:80", why: ReasonHost},
		{text: "2606:4700::1:80", why: ReasonUnparseable},
		{text: "[2606:4700::1]", why: ReasonUnparseable},
		{text: "[2606:4700::1]80", why: ReasonUnparseable},
		{text: "[2606:4700::1:80", why: ReasonUnparseable},
		{text: "2606:4700::1]:80", why: ReasonUnparseable},
		{text: "[]:80", why: ReasonUnparseable},
		{text: "[::1.2.3.4]:80", want: "[::102:304]:80"},               // IPv4-compatible: an address of its own
		{text: "[64:ff9b::1.2.3.4]:80", want: "[64:ff9b::102:304]:80"}, // NAT64, likewise
		{text: "[2606:4700::1.2.3.4]:80", want: "[2606:4700::102:304]:80"},
		{text: "[0000:0000:0000:0000:0000:ffff:0102:0304]:80", want: "1.2.3.4:80"},
		{text: "[::FFFF:1.2.3.4]:80", want: "1.2.3.4:80"},
		{text: "[::ffff:1.2.3]:80", why: ReasonHost},
		{text: "[::ffff:0x1.2.3.4]:80", why: ReasonHost},
		{text: "[2606:4700:00001::1]:80", why: ReasonHost},
		{text: "[2606:4700::1.]:80", why: ReasonHost},
		{text: "[2606:4700::1/64]:80", why: ReasonHost},
		{text: "[2606:4700::1%]:80", why: ReasonHost},
		{text: "[2606:4700:0:0:0:0:1]:80", why: ReasonHost},
		{text: "[2606:4700:0:0:0:0:0:0:1]:80", why: ReasonHost},
		{text: "[2606:4700::１]:80", why: ReasonHost},
		{text: "[ 2606:4700::1]:80", why: ReasonHost},
		{text: "[[2606:4700::1]]:80", why: ReasonUnparseable},
		{text: "(2606:4700::1):80", why: ReasonUnparseable},
		// names
		{text: "proxy.example.org:80", want: "proxy.example.org:80"},
		{text: "Proxy.EXAMPLE.org:80", want: "proxy.example.org:80"},
		{text: "proxy.example.org.:80", want: "proxy.example.org:80"},
		{text: "proxy.example.org..:80", why: ReasonHost},
		{text: "xn--bcher-kva.example:80", want: "xn--bcher-kva.example:80"},
		{text: "bücher.example:80", why: ReasonHost},
		{text: "\u212aelvin.example:80", why: ReasonHost}, // KELVIN SIGN, which lower-cases to k
		{text: "１２.example:80", why: ReasonHost},
		{text: "localhost:80", why: ReasonHost},
		{text: "a_b.example.org:80", why: ReasonHost},
		{text: "-a.example.org:80", why: ReasonHost},
		{text: "a-.example.org:80", why: ReasonHost},
		{text: "v1.2.3.4:80", why: ReasonHost},
		{text: "XN--BCHER-KVA.example:80", want: "xn--bcher-kva.example:80"},
		{text: "例え.テスト:80", why: ReasonHost},
		{text: "proxy。example.org:80", why: ReasonHost}, // ideographic full stop
		{text: "ｐroxy.example.org:80", why: ReasonHost}, // full-width p
		{text: "раypal.example:80", why: ReasonHost},    // Cyrillic er and a
		{text: "pro\u00adxy.example:80", why: ReasonHost},
		{text: "_proxy._tcp.example.org:80", why: ReasonHost},
		{text: ".example.org:80", why: ReasonHost},
		{text: "proxy..org:80", why: ReasonHost},
		{text: "*.example.org:80", why: ReasonHost},
		{text: "proxy.example.org%00:80", why: ReasonHost},
		{text: "pro%78y.example.org:80", why: ReasonHost},
		{text: "proxy.example.org/:80", why: ReasonHost},
		{text: "proxy.example.1org:80", why: ReasonHost},
		{text: "1.2.3.4.example.org:80", want: "1.2.3.4.example.org:80"}, // a name, whatever it is called
		{text: "0x7f.example.org:80", want: "0x7f.example.org:80"},
		{text: "localhost.:80", why: ReasonHost},
		{text: "1080202.61.204.51:80", why: ReasonHost},
		{text: "[proxy.example.org]:80", why: ReasonUnparseable},
		{text: strings.Repeat("a", 63) + ".example:80", want: strings.Repeat("a", 63) + ".example:80"},
		{text: strings.Repeat("a", 64) + ".example:80", why: ReasonHost},
		{text: strings.Repeat("a.", 124) + "b.org:80", want: strings.Repeat("a.", 124) + "b.org:80"},
		{text: strings.Repeat("a.", 125) + "b.org:80", why: ReasonHost},
		// ports
		{text: "1.2.3.4:1", want: "1.2.3.4:1"},
		{text: "1.2.3.4:0", why: ReasonPort},
		{text: "1.2.3.4:080", why: ReasonPort},
		{text: "1.2.3.4:65536", why: ReasonPort},
		{text: "1.2.3.4:99999999999999999999", why: ReasonPort},
		{text: "1.2.3.4:+80", why: ReasonPort},
		{text: "1.2.3.4:-80", why: ReasonPort},
		{text: "1.2.3.4:8e1", why: ReasonPort},
		{text: "1.2.3.4:0x50", why: ReasonPort},
		{text: "1.2.3.4:8_0", why: ReasonPort},
		{text: "1.2.3.4:80 ", why: ReasonPort},
		{text: "1.2.3.4: 80", why: ReasonPort},
		{text: "1.2.3.4:８０", why: ReasonPort},
		{text: "1.2.3.4:http", why: ReasonPort},
		{text: "1.2.3.4:65535", want: "1.2.3.4:65535"},
		{text: "1.2.3.4:00080", why: ReasonPort},
		{text: "1.2.3.4:0120", why: ReasonPort},
		{text: "1.2.3.4:65616", why: ReasonPort}, // 80 in sixteen bits
		{text: "1.2.3.4:4294967376", why: ReasonPort},
		{text: "1.2.3.4:80.0", why: ReasonPort},
		{text: "1.2.3.4:8,080", why: ReasonPort},
		{text: "1.2.3.4:٨٠", why: ReasonPort},
		{text: "1.2.3.4:%38%30", why: ReasonPort},
		{text: "1.2.3.4:" + strings.Repeat("0", 10_000) + "80", why: ReasonPort},
		{text: "1.2.3.4:", why: ReasonPort},
		{text: "1.2.3.4:80/", why: ReasonPort},
		{text: "1.2.3.4", why: ReasonUnparseable},
		{text: ":80", why: ReasonHost},
		{text: "", why: ReasonUnparseable},
		{text: "1.2.3.4:80:90", why: ReasonUnparseable},
		{text: "http://1.2.3.4:80", why: ReasonUnparseable},
		// users
		{text: "joe:secret@1.2.3.4:80", want: "joe:secret@1.2.3.4:80"},
		{text: "joe@1.2.3.4:80", want: "joe:@1.2.3.4:80"},
		{text: "joe:@1.2.3.4:80", want: "joe:@1.2.3.4:80"},
		{text: "JOE:Secret@1.2.3.4:80", want: "JOE:Secret@1.2.3.4:80"},
		{text: "joe:a:b@1.2.3.4:80", want: "joe:a%3Ab@1.2.3.4:80"},
		{text: "joe:p%40ss@1.2.3.4:80", want: "joe:p%40ss@1.2.3.4:80"},
		{text: "joe:p@ss@1.2.3.4:80", want: "joe:p%40ss@1.2.3.4:80"},
		{text: "joe:%73ecret@1.2.3.4:80", want: "joe:secret@1.2.3.4:80"},
		{text: "joe:p%2fss@1.2.3.4:80", want: "joe:p%2Fss@1.2.3.4:80"},
		{text: "joe:%C3%BC@1.2.3.4:80", want: "joe:%C3%BC@1.2.3.4:80"},
		{text: "joe:ü@1.2.3.4:80", want: "joe:%C3%BC@1.2.3.4:80"},
		{text: "joe:a+b@1.2.3.4:80", want: "joe:a%2Bb@1.2.3.4:80"},
		{text: "joe:%@1.2.3.4:80", why: ReasonUser},
		{text: "joe:a%25b@1.2.3.4:80", want: "joe:a%25b@1.2.3.4:80"}, // decoded once
		{text: "joe:a%2540b@1.2.3.4:80", want: "joe:a%2540b@1.2.3.4:80"},
		{text: "joe:%E2%80%AE@1.2.3.4:80", want: "joe:%E2%80%AE@1.2.3.4:80"},
		{text: "joe:%ff@1.2.3.4:80", want: "joe:%FF@1.2.3.4:80"},
		{text: "joe%40corp:x@proxy.example.org:80", want: "joe%40corp:x@proxy.example.org:80"},
		{text: "joe:x@[2606:4700:0::1]:80", want: "joe:x@[2606:4700::1]:80"},
		{text: "joe:x@[::ffff:1.2.3.4]:80", want: "joe:x@1.2.3.4:80"},
		{text: "joe:x@", why: ReasonUnparseable},
		{text: "joe:x@1.2.3.4", why: ReasonUnparseable},
		{text: "joe:x@:80", why: ReasonHost},
		{text: "joe:x@01.2.3.4:80", why: ReasonLeadingZero},
		{text: "joe:x@@1.2.3.4:80", want: "joe:x%40@1.2.3.4:80"},
		{text: "joe:x\n@1.2.3.4:80", why: ReasonUser},
		{text: "[joe]:x@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%zz@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%00@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%0d%0a@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%7f@1.2.3.4:80", why: ReasonUser},
		{text: "joe:\t@1.2.3.4:80", why: ReasonUser},
		{text: "j%3Aoe:x@1.2.3.4:80", why: ReasonUser},
		{text: ":secret@1.2.3.4:80", why: ReasonUser},
		{text: "@1.2.3.4:80", why: ReasonUser},
		{text: ":@1.2.3.4:80", why: ReasonUser},
		{text: long + ":" + long + "@1.2.3.4:80", want: long + ":" + long + "@1.2.3.4:80"},
		{text: long + "a:x@1.2.3.4:80", why: ReasonUser},
		{text: "joe:" + long + "a@1.2.3.4:80", why: ReasonUser},
		{text: strings.Repeat("1.", 100_000) + "1:80", why: ReasonHost},
		{text: strings.Repeat("a", 1<<20), why: ReasonUnparseable},
		{text: strings.Repeat("x@", 100_000) + "1.2.3.4:80", why: ReasonUser},
		{text: "[" + strings.Repeat("0", 100_000) + "::1]:80", why: ReasonHost},
		// What other readers of URLs take for a host and the beginning of a path,
		// a query or a fragment.
		{text: "1.1.1.1:80/@1.2.3.4:80", why: ReasonUser},
		{text: "1.1.1.1:80?@1.2.3.4:80", why: ReasonUser},
		{text: "1.1.1.1:80#@1.2.3.4:80", why: ReasonUser},
		{text: `1.1.1.1:80\@1.2.3.4:80`, why: ReasonUser},
		{text: "joe:a b@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%20@1.2.3.4:80", want: "joe:%20@1.2.3.4:80"},
	} {
		got, err := ParseEndpoint(c.text)
		var refused *ParseError
		switch {
		case c.why == "" && err != nil:
			t.Errorf("ParseEndpoint(%q): %v, want %q", c.text, err, c.want)
		case c.why == "" && got.String() != c.want:
			t.Errorf("ParseEndpoint(%q) = %q, want %q", c.text, got, c.want)
		case c.why != "" && (!errors.As(err, &refused) || refused.Reason != c.why || !got.IsZero()):
			t.Errorf("ParseEndpoint(%q) = %q, %v, want %q", c.text, got, err, c.why)
		}
	}
}
