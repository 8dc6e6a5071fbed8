package datasets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment"
)

// keysError is an error about a dataset of a spec. It names keys of the spec in the place of flags.
type keysError struct{ error }

var (
	readingFlag  = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)
	readingValue = regexp.MustCompile(`(--(?:thousands|decimal|delimiter)) ([.,;|']|" ")(\s|$)`)
	readingWord  = regexp.MustCompile(`(--(?:header|labels|missing)) (yes|no|auto|drop|mean|median|class|age|counts|\d+)\b`)
)

// Error writes the error with keys: thousands: "," for --thousands , and label_columns for --label-columns.
func (e *keysError) Error() string {
	text := readingValue.ReplaceAllStringFunc(e.error.Error(), func(match string) string {
		m := readingValue.FindStringSubmatch(match)
		return fmt.Sprintf("%s: %q%s", m[1], strings.Trim(m[2], `"`), m[3])
	})
	text = readingWord.ReplaceAllString(text, "$1: $2")
	return readingFlag.ReplaceAllStringFunc(text, func(flag string) string {
		if key := strings.ReplaceAll(flag[2:], "-", "_"); slices.Contains(experiment.ReadingKeys, key) {
			return key
		}
		return flag
	})
}

// Unwrap returns the error with flags.
func (e *keysError) Unwrap() error { return e.error }
