package netlab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are what every link of a network is like, in each direction. The zero value
// passes every packet at once.
type Settings struct {
	RTT    time.Duration // round trip: half of it in each direction
	Jitter time.Duration // a packet takes up to this longer, in each direction; order is kept
	// Shares of the packets, 0 to maxShare: those that are lost and those that arrive twice.
	Loss, Duplicate float64
	Rate            int64 // bits a second; 0: no limit
}

// The bounds of Settings.
const (
	maxRTT    = 10 * time.Second
	maxShare  = 0.9
	leastRate = 10_000
	mostRate  = 100_000_000_000
)

// queueBytes is the size of the packets that wait for the rate at most; what comes then is lost.
const queueBytes = 64 << 10

// keys lists what Parse reads.
var keys = []string{"rtt", "jitter", "loss", "duplicate", "rate"}

// Parse reads settings such as "rtt=50ms,jitter=5ms,loss=1%,rate=1Mbit". Its errors name the key.
func Parse(text string) (s Settings, err error) {
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case !slices.Contains(keys, key):
			return s, fmt.Errorf("unknown setting %q: want %s", key, strings.Join(keys, ", "))
		case !ok:
			return s, fmt.Errorf("%s has no value: want %s=VALUE", key, key)
		case slices.Contains(seen, key):
			return s, fmt.Errorf("the setting %s is given twice", key)
		}
		seen = append(seen, key)
		switch key {
		case "rtt":
			s.RTT, err = parseTime(value)
		case "jitter":
			s.Jitter, err = parseTime(value)
		case "loss":
			s.Loss, err = parseShare(value)
		case "duplicate":
			s.Duplicate, err = parseShare(value)
		case "rate":
			s.Rate, err = parseRate(value)
		}
		if err != nil {
			return s, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	return s, nil
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxRTT {
		return 0, fmt.Errorf("want a time from 0s to %v, such as 50ms", maxRTT)
	}
	return d, nil
}

func parseShare(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if !isPercent || err != nil || math.IsNaN(v) || v < 0 || v > 100*maxShare {
		return 0, fmt.Errorf("want a percentage of packets from 0%% to %v%%", 100*maxShare)
	}
	return v / 100, nil
}

// rateUnits are the units of rates, which are powers of 1,000.
var rateUnits = []struct {
	name string
	bits float64
}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}}

func parseRate(text string) (int64, error) {
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err == nil && v*u.bits >= leastRate && v*u.bits <= mostRate {
			return int64(math.Round(v * u.bits)), nil
		}
	}
	return 0, errors.New("want a rate from 10kbit to 100Gbit a second, such as 1Mbit")
}
