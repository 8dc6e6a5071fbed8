package datasets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// keysError is an error about a dataset of a spec. It names keys of the spec in the place of flags.
type keysError struct{ error }

// Formed implements errtext.Formed.
func (e *keysError) Formed() (errtext.Code, errtext.Text) {
	code := errtext.WrongData
	if f := errtext.Of(e.error.Error(), e.error); f != nil {
		code = f.Code
	}
	return code, errtext.Within(e.error.Error(), e.error).Keys(func(key string) bool { return slices.Contains(experiment.ReadingKeys, key) })
}

var (
	readingFlag  = regexp.MustCompile(`--[a-z]+(?:-[a-z]+)*`)
	readingValue = regexp.MustCompile(`(--(?:thousands|decimal|delimiter)) ([.,;|']|" ")(\s|$)`)
	readingWord  = regexp.MustCompile(`(--(?:header|labels|missing)) (yes|no|auto|drop|mean|median|class|age|counts|\d+)\b`)
)

// Error writes the error with keys: thousands: "," for --thousands , and label_columns for --label-columns. A text of the error may
// have flags that are no places.
func (e *keysError) Error() string {
	_, formed := e.Formed()
	text := readingValue.ReplaceAllStringFunc(formed.String(), func(match string) string {
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
