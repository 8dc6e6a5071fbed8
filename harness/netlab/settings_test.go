package netlab

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := Parse("rtt=50ms,jitter=5ms,loss=1%,duplicate=0.5%,rate=1.5Mbit")
	want := Settings{RTT: 50 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01, Duplicate: 0.005,
		Rate: 1_500_000}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := Parse("rate=10kbit"); err != nil || got != (Settings{Rate: 10_000}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// An error names the key, and what it may be.
func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "rtt, jitter, loss",
		"latency=5ms":             `unknown setting "latency"`,
		"rtt":                     "rtt has no value",
		"rtt=":                    "rtt=: want a time",
		"rtt=50":                  "such as 50ms",
		"rtt=-1ms":                "rtt=-1ms",
		"rtt=1m":                  "10s",
		"loss=1":                  "loss=1: want a percentage of packets from 0% to 90%",
		"loss=100%":               "loss=100%",
		"loss=NaN%":               "loss=NaN%",
		"rate=1":                  "rate=1: want a rate",
		"rate=1MB":                "such as 1Mbit",
		"rate=1bit":               "rate=1bit",
		"rate=NaNMbit":            "rate=NaNMbit",
		"rtt=1ms,loss=1%,rtt=2ms": "rtt is given twice",
		"rtt=1ms,":                `unknown setting ""`,
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, which does not say %q", text, err, says)
		}
	}
}

// What is read is within its bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"rtt=50ms,loss=1%", "rate=1Mbit", "jitter=1s", "loss=NaN%", "rate=1e300Gbit", "=,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		for _, share := range []float64{s.Loss, s.Duplicate} {
			if !(share >= 0 && share <= maxShare) {
				t.Fatalf("%q: a share of %v", text, share)
			}
		}
		if s.RTT < 0 || s.RTT > maxRTT || s.Jitter < 0 || s.Jitter > maxRTT || s.Rate != 0 &&
			(s.Rate < leastRate || s.Rate > mostRate) {
			t.Fatalf("%q is read as %+v", text, s)
		}
	})
}

// Any bytes are a packet or none.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 24, 0, 0, 0, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0x1f, 0x90, 0, 80})
	f.Add([]byte{0x4f})
	f.Add([]byte{0x60, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHeader(b)
		if ok && (!h.from.Is4() || !h.to.Is4() || len(b) < leastHeader) {
			t.Fatalf("%x is read as %+v", b, h)
		}
	})
}

func TestHeader(t *testing.T) {
	h, ok := parseHeader([]byte{0x45, 0, 0, 24, 0, 0, 0, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0x1f, 0x90, 0, 80})
	if !ok || h != (header{from: addressOf(0), to: addressOf(1), fromPort: 8080, toPort: 80}) {
		t.Errorf("got %+v, %v", h, ok)
	}
	if h, ok := parseHeader([]byte{0x45, 0, 0, 24, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0x1f, 0x90, 0,
		80}); !ok || h.fromPort != 0 {
		t.Errorf("UDP: %+v, %v", h, ok)
	}
}
