package commands

import (
	"testing"
)

func TestWithPort(t *testing.T) {
	for text, want := range map[string]string{
		"host1": "host1:7100", "10.0.0.1": "10.0.0.1:7100", "host1:80": "host1:80", "[::1]": "[::1]:7100", "[::1]:9": "[::1]:9",
		"::1": "::1", "7100": "7100", "": "", "http://host1": "http://host1", "host1:": "host1:", "a/b": "a/b",
	} {
		if got := withPort(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
