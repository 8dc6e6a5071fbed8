package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-ldl/coppice/dataset/numbers"
)

// dialect is how the records of a CSV file are written.
type dialect struct {
	delimiter rune // between columns
	marks     numbers.Marks
	skip      int // bytes before the first record: a line "sep=;" and comments
	before    int // lines of them
	comments  int // lines of comments of these
	// commented is where in the file the last comment begins, after its mark: its line may be the header.
	commented int
	mark      string // of that comment
}

// delimiters are those that are recognised.
var delimiters = []rune{',', ';', '\t', '|'}

const tabWord = "tab"

func delimiterName(r rune) string {
	if r == '\t' {
		return tabWord
	}
	return strconv.Quote(string(r))
}

// ParseDelimiter reads what stands between the columns of a CSV file: one
// character, or "tab".
func ParseDelimiter(s string) (rune, error) {
	if s == tabWord || s == `\t` {
		return '\t', nil
	}
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 || size != len(s) || r == 0 || r == utf8.RuneError || strings.ContainsRune("\"\r\n.-0123456789", r) {
		return 0, fmt.Errorf("delimiter %q: want one character, such as ; or |, or the word tab", s)
	}
	return r, nil
}

// ParseDecimal reads the decimal separator and reports whether it is a comma.
func ParseDecimal(s string) (comma bool, err error) {
	if s != "." && s != "," {
		return false, fmt.Errorf("decimal %q: want . or ,", s)
	}
	return s == ",", nil
}

// ParseThousands reads the mark between thousands: a comma, a point, an apostrophe or a blank.
func ParseThousands(s string) (rune, error) {
	switch s {
	case ",", ".", "'", " ":
		return rune(s[0]), nil
	}
	return 0, fmt.Errorf("thousands %q: want , or . or ' or a blank", s)
}

// sniffBytes and sniffRecords bound the bytes and records that the dialect of a file is
// guessed from.
const (
	sniffBytes   = 1 << 18
	sniffRecords = 100
)

// commentMark returns the mark that a line of a comment begins with; empty: it is none. A line whose first
// field is a mark alone has a column of that name.
func commentMark(line string) string {
	for _, mark := range commentMarks {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), mark); ok && !strings.HasPrefix(rest, "\t") && (rest == "" || !slices.Contains(delimiters, rune(rest[0]))) {
			return mark
		}
	}
	return ""
}

// commentMarks begin the lines of comments that may stand before the first record.
var commentMarks = []string{"#", "%", "//"}
