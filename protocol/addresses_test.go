package protocol

import (
	"strings"
	"testing"
)

func TestCheckID(t *testing.T) {
	for _, good := range []string{"a", "w1-b_2", strings.Repeat("x", 64)} {
		if err := CheckID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "c/d", `b"c`, "x\xff", "ü", "a.b", "a b", "a\rb", "a\n", "*", ">",
		strings.Repeat("x", 65)} {
		if CheckID(bad) == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	for _, good := range []string{"h:1", "10.0.0.1:7100", "[::1]:65535", "[fe80::1%eth0]:7100", "node-1.example.com.:80",
		"my_host:80", "0.0.0.0:7100", "1a:7100", "3.example:1"} {
		if err := CheckAddress(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "h", "::1", ":7100", "h:", "h:port", "h:0", "h:99999", "h:+1", "h:-1", "127.0.0.1:99999", "a b:1", "a/b:1",
		"a@b:1", "-a:1", "[::1", "1:7100", "127.1:7100",
		"256.1.1.1:1", "0x7f.1:1", "0x0:1", "a.1.:1", "h:1\n", strings.Repeat("x", 254) + ":1",
	} {
		if CheckAddress(bad) == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func TestCheckReachable(t *testing.T) {
	for _, good := range []string{"h:1", "10.0.0.1:7100", "127.0.0.1:7100", "[::1]:7100", "localhost:7100"} {
		if err := CheckReachable(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"0.0.0.0:7100", "[::]:7100", "[::ffff:0.0.0.0]:7100", "[::%eth0]:7100", ":7100", "0:7100",
		"255.255.255.255:1", "224.0.0.1:1", "[ff02::1]:1", "h"} {
		if CheckReachable(bad) == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func TestSameHost(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"h", "H.", true}, {"h", "g", false}, {"10.0.0.1", "::ffff:10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false},
		{"0::1", "::1", true},
		{"localhost", "127.0.0.1", true}, {"::1", "LOCALHOST", true}, {"localhost", "localhost", true},
		{"127.0.0.1", "::1", false}, {"127.0.0.1", "127.0.0.2", false}, {"localhost", "10.0.0.1", false},
		{"localhost", "127.0.0.2", false},
	} {
		if SameHost(test.a, test.b) != test.want || SameHost(test.b, test.a) != test.want {
			t.Errorf("%s and %s: %v", test.a, test.b, !test.want)
		}
	}
}
