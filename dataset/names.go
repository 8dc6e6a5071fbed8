package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// MaxName bounds the name of a column, a class or a row, in bytes.
const MaxName = 1 << 12

// checkNames returns an error for a name that is too long; what says what the names name.
func checkNames(what string, names []string) error {
	for i, name := range names {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("the name of %s %d (counted from 0) %w", what, i, err)
		}
	}
	return nil
}

// CheckName says why a name cannot be read; the error's text is a predicate.
func CheckName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("has %s bytes, at most %s are allowed", units.Count(len(name)), units.Count(MaxName))
	}
	return nil
}

// DefaultName is what WriteCSV calls column i without a name; a label's is without its
// prefix, as it is read.
func DefaultName(what string, i int) string {
	if what == "label" {
		return strings.TrimPrefix(DefaultLabelName(i), "label_")
	}
	return DefaultFeatureName(i)
}

// CheckDistinct refuses names that are not distinct; empty names do not count. what says what
// they name.
func CheckDistinct(what string, names []string) error {
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if first, ok := seen[name]; ok && name != "" {
			return fmt.Errorf("%s %d and %d (counted from 0) are both named %q", what, first, i, name)
		}
		seen[name] = i
	}
	return nil
}

// NameAt returns name i; empty: there is none.
func NameAt(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}

// CleanNames returns names without the blanks at their ends; none where all are empty.
func CleanNames(names []string) []string {
	clean := Trimmed(names)
	if !slices.ContainsFunc(clean, func(name string) bool { return name != "" }) {
		return nil
	}
	return clean
}

// Trimmed returns texts without the blanks at their ends; nil if there are none.
func Trimmed(texts []string) (out []string) {
	for _, s := range texts {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// DefaultFeatureName returns the name of feature i of a file without names.
func DefaultFeatureName(i int) string { return "x" + strconv.Itoa(i) }

// DefaultLabelName returns the name of label i of a file without names.
func DefaultLabelName(i int) string { return "label_" + strconv.Itoa(i) }

// Counted returns a number of things in words: "1 sample", "2 samples".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", units.Count(n), what)
}

// FirstDifference returns the first position at which two lists differ.
func FirstDifference(a, b []string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// Quoted returns name i in quotes, or "none" after the last.
func Quoted(names []string, i int) string {
	if i >= len(names) {
		return "none"
	}
	return fmt.Sprintf("%q", names[i])
}

// ListSome writes the number of names, and the first of them.
func ListSome(names []string) string {
	const shown = 5
	if len(names) == 0 {
		return "none"
	}
	var list []string
	for i := range min(shown, len(names)) {
		list = append(list, Quoted(names, i))
	}
	if len(names) > shown {
		list = append(list, "...")
	}
	return fmt.Sprintf("%s (%s)", units.Count(len(names)), strings.Join(list, ", "))
}
