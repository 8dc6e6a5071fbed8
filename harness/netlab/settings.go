package netlab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Settings are what every link of a network is like, in each direction. The zero value
// passes every packet at once.
type Settings struct {
	RTT    time.Duration // round trip: half of it in each direction
	Jitter time.Duration // a packet takes up to this longer, in each direction; order is kept
	// Shares of the packets, 0 to maxShare: those that are lost, those that arrive twice,
	// and those that arrive after packets that were sent later.
	Loss, Duplicate, Reorder float64
	Rate                     int64 // bits a second; 0: no limit
	Queue                    int64 // bytes that wait for the rate at most; what comes then is lost
}

// The bounds of Settings, and the queue where they have a rate and do not say.
const (
	maxRTT       = 10 * time.Second
	maxShare     = 0.9
	leastRate    = 10_000
	mostRate     = 100_000_000_000
	leastQueue   = 2 * mtu
	mostQueue    = 1 << 30
	defaultQueue = 64 << 10
)

// setting is one key of the text of Settings.
type setting struct {
	key   string
	parse func(*Settings, string) error
	text  func(*Settings) string // empty: as where it is not given
}

// settings lists the keys in the order in which they are written.
var settings = []setting{
	{"rtt", timeOf(func(s *Settings) *time.Duration { return &s.RTT }), timeText(func(s *Settings) time.Duration { return s.RTT })},
	{"jitter", timeOf(func(s *Settings) *time.Duration { return &s.Jitter }), timeText(func(s *Settings) time.Duration { return s.Jitter })},
	{"loss", shareOf(func(s *Settings) *float64 { return &s.Loss }), shareText(func(s *Settings) float64 { return s.Loss })},
	{"duplicate", shareOf(func(s *Settings) *float64 { return &s.Duplicate }), shareText(func(s *Settings) float64 { return s.Duplicate })},
	{"reorder", shareOf(func(s *Settings) *float64 { return &s.Reorder }), shareText(func(s *Settings) float64 { return s.Reorder })},
	{"rate", parseRate, rateText},
	{"queue", parseQueue, queueText},
}

// Keys lists what Parse reads.
func Keys() (keys []string) {
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	return keys
}

// Parse reads settings such as "rtt=50ms,jitter=5ms,loss=1%,rate=1Mbit,queue=64KiB". Its
// errors name the key.
func Parse(text string) (Settings, error) {
	var s Settings
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
		switch {
		case i < 0:
			return s, fmt.Errorf("unknown setting %q: want %s", key, strings.Join(Keys(), ", "))
		case !ok:
			return s, fmt.Errorf("%s has no value: want %s=VALUE", key, key)
		case slices.Contains(seen, key):
			return s, fmt.Errorf("the setting %s is given twice", key)
		}
		if err := settings[i].parse(&s, value); err != nil {
			return s, fmt.Errorf("%s=%s: %w", key, value, err)
		}
		seen = append(seen, key)
	}
	if s.Rate == 0 && s.Queue > 0 {
		return s, errors.New("queue needs rate: packets wait in the queue only if a rate is set")
	}
	if s.Rate > 0 && s.Queue == 0 {
		s.Queue = defaultQueue
	}
	return s, nil
}

// String is what Parse reads as the same settings; empty for the zero value.
func (s Settings) String() string {
	var parts []string
	for _, one := range settings {
		if text := one.text(&s); text != "" {
			parts = append(parts, one.key+"="+text)
		}
	}
	return strings.Join(parts, ",")
}

func timeOf(at func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > maxRTT {
			return fmt.Errorf("want a time from 0s to %v, such as 50ms", maxRTT)
		}
		*at(s) = d
		return nil
	}
}

func timeText(of func(*Settings) time.Duration) func(*Settings) string {
	return func(s *Settings) string {
		if of(s) == 0 {
			return ""
		}
		return of(s).String()
	}
}

func shareOf(at func(*Settings) *float64) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		number, isPercent := strings.CutSuffix(text, "%")
		v, err := strconv.ParseFloat(number, 64)
		if !isPercent || err != nil || math.IsNaN(v) || v < 0 || v > 100*maxShare {
			return fmt.Errorf("want a percentage of packets from 0%% to %v%%", 100*maxShare)
		}
		*at(s) = v / 100
		return nil
	}
}

func shareText(of func(*Settings) float64) func(*Settings) string {
	return func(s *Settings) string {
		if of(s) == 0 {
			return ""
		}
		return strconv.FormatFloat(100*of(s), 'g', 12, 64) + "%"
	}
}

// tasks of rates, from the greatest: they are powers of 1,000.
var rateUnits = []struct {
	name string
	bits float64
}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}}

func parseRate(s *Settings, text string) error {
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err == nil && v*u.bits >= leastRate && v*u.bits <= mostRate {
			s.Rate = int64(math.Round(v * u.bits))
			return nil
		}
	}
	return errors.New("want a rate from 10kbit to 100Gbit a second, such as 1Mbit")
}

func rateText(s *Settings) string {
	for _, u := range rateUnits {
		if v := float64(s.Rate) / u.bits; v >= 1 {
			return strconv.FormatFloat(v, 'f', -1, 64) + u.name
		}
	}
	return ""
}

func parseQueue(s *Settings, text string) error {
	v, err := units.Parse(text)
	if err != nil || v < leastQueue || v > mostQueue {
		return fmt.Errorf("want a size from %d bytes to 1GiB, such as 64KiB", leastQueue)
	}
	s.Queue = v
	return nil
}

func queueText(s *Settings) string {
	if s.Queue == 0 {
		return ""
	}
	return strconv.FormatInt(s.Queue, 10)
}
