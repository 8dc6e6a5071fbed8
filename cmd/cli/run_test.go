package cli

import (
	"strings"
	"testing"
)

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{
		"": false, "-o json": true, "-ojson": true, "-o=json": true, "--output json x": true, "--output=json": true,
		"-o text": false, "--output": false, "x -- -o json": false, "-o json -o text": false,
	} {
		if wantsJSON(strings.Fields(line)) != want {
			t.Errorf("%q", line)
		}
	}
}
