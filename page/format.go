package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// formatTime returns a time in UTC; "" for 0. unix is in seconds.
func formatTime(unix int64) string {
	if unix == 0 {
		return ""
	}
	return time.Unix(unix, 0).UTC().Format("2006-01-02 15:04:05 UTC")
}

// formatSeconds returns a duration such as 1 h 05 min.
func formatSeconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s <= 0 || math.IsNaN(s):
		return ""
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// formatNumber returns a number with four significant digits. Large whole numbers have all digits, in groups.
func formatNumber(v any) string {
	var whole int64
	switch n := v.(type) {
	case int:
		whole = int64(n)
	case int64:
		whole = n
	case uint64:
		whole = int64(min(n, math.MaxInt64))
	case uint32:
		whole = int64(n)
	case float64:
		return strconv.FormatFloat(n, 'g', 4, 64)
	default:
		return fmt.Sprint(v)
	}
	text := strconv.FormatInt(whole, 10)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 && text[i-1] != '-' && len(text) > 4 {
			b.WriteRune(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// formatBytes returns a size such as 1.5 KiB.
func formatBytes(n uint64) string { return units.Format(int64(min(n, math.MaxInt64))) }

// formatPercent returns a fraction as a percentage.
func formatPercent(f float64) string { return strconv.Itoa(int(100*min(max(f, 0), 1))) + " %" }

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return formatNumber(n) + " " + noun
}

// formatRatio returns a ratio with two digits.
func formatRatio(r float64) string {
	if r >= 10 {
		return formatNumber(int(min(r, 1e6)))
	}
	return strconv.FormatFloat(r, 'f', 1, 64)
}

// formatShort returns a time of a task.
func formatShort(seconds float64) string {
	switch {
	case !(seconds > 0):
		return ""
	case seconds < 1e-3:
		return strconv.FormatFloat(seconds*1e6, 'f', 0, 64) + " µs"
	case seconds < 1:
		return strconv.FormatFloat(seconds*1e3, 'g', 3, 64) + " ms"
	}
	return formatSeconds(seconds)
}

// since says how long ago something was; ms < 0: not yet.
func since(ms int64) string {
	switch {
	case ms < 0:
		return "not yet"
	case ms < 3000:
		return "now" // heartbeats and questions come every few seconds, so smaller differences say nothing
	}
	return formatSeconds(math.Round(float64(ms)/1000)) + " ago"
}

// formatDisk says how much of a disk is free.
func formatDisk(free, size uint64) string {
	if size == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s", formatBytes(free), formatBytes(size))
}

// failure is the error of a job: the reason, and the place where it occurred; empty: the error does not say.
type failure struct{ Reason, Place string }

// The begin of the error of a job, as packages engine and schedule write it.
var (
	failedRound = regexp.MustCompile(`^round (\d+): `)
	failedTask  = regexp.MustCompile(`^(no worker (?:can|could) compute the task(?: for [^:\s]+)?): `)
	failedOn    = regexp.MustCompile(`^task (\d+) on worker ([^\s:]+): `)
)

// failureOf divides the error of a job: readers want the reason first.
func failureOf(text string) failure {
	rest := text
	next := func(pattern *regexp.Regexp) []string {
		found := pattern.FindStringSubmatch(rest)
		if found != nil {
			rest = rest[len(found[0]):]
		}
		return found
	}
	var place []string
	round, all, on := next(failedRound), next(failedTask), next(failedOn)
	if on != nil {
		place = append(place, fmt.Sprintf("task %s on worker %s", on[1], on[2]))
	}
	if round != nil {
		place = append(place, "round "+round[1])
	}
	if all != nil {
		place = append(place, all[1])
	}
	if rest == "" || place == nil {
		return failure{Reason: text}
	}
	return failure{Reason: capital(rest), Place: capital(strings.Join(place, ", ")) + "."}
}

// capital returns a text whose first letter is a capital.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// eventNumber returns the number of an event of a job from 1 on. dropped events were between the first ones and the
// others.
func eventNumber(i int, dropped uint64) uint64 {
	if i >= protocol.FirstEvents {
		return uint64(i+1) + dropped
	}
	return uint64(i + 1)
}
