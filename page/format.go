package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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
