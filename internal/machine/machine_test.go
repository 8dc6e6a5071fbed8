package machine

import (
	"runtime"
	"strings"
	"testing"
)

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]float64{
		"0.52 0.58 0.59 1/467 12345\n": 0.52, "12.00": 12, "": 0, "x 1 2": 0, "-1 2 3": 0, "NaN 1 1": 0, "Inf 1 1": 0,
	} {
		if got := parseLoad(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestHere(t *testing.T) {
	if name := Name(); name == "" || len(name) > MaxName || strings.ContainsAny(name, " \n") {
		t.Errorf("the machine's name is %q", name)
	}
	if load := Load(); load < 0 || runtime.GOOS != "linux" && load != 0 {
		t.Errorf("a load of %v", load)
	}
}
