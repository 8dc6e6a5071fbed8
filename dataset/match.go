package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Match says how the columns of a file were matched with a model's. Commands print its JSON
// form.
type Match struct {
	By     string `json:"by"`               // ByName or ByPosition
	Why    string `json:"why,omitempty"`    // with ByPosition: which side has no names
	Moved  int    `json:"moved"`            // columns that have another position in the file
	Filled int    `json:"filled,omitempty"` // columns that a sparse file lacks, read as 0

	// from is the file's column of each of the model's; nil: the same.
	from []int
}

// The values of Match.By.
const (
	ByName     = "name"
	ByPosition = "position"
)

// columns are one side of a match; names are empty or n.
type columns struct {
	n     int
	names []string
}

// match finds the file's column for each of the model's. what is "feature" or "label", for
// messages.
func match(what string, model, file columns) (*Match, error) {
	if len(model.names) == 0 && defaultNames(what, file.names) {
		model.names = make([]string, model.n)
		for i := range model.names {
			model.names[i] = defaultName(what, i)
		}
	}
	switch {
	case len(model.names) == 0 && len(file.names) == 0:
		return matchPositions(what, model.n, file.n, "neither the model nor the file has the names of "+what+"s")
	case len(model.names) == 0:
		return matchPositions(what, model.n, file.n, "the model does not have the names of "+what+"s")
	case len(file.names) == 0:
		return matchPositions(what, model.n, file.n, "the file does not have the names of "+what+"s")
	}
	from, missing, extra := matchNames(model.names, file.names)
	if len(missing)+len(extra) > 0 {
		return nil, differ(what, model.names, file.names, missing, extra)
	}
	return matched(from), nil
}

func matchPositions(what string, model, file int, why string) (*Match, error) {
	if model != file {
		hint := ""
		if what == "feature" && file > model {
			hint = "; --drop leaves columns out"
		}
		return nil, fmt.Errorf("found %s, but the model %s %s, and %s%s", counted(file, what), verb(what), units.Count(model), why, hint)
	}
	return &Match{By: ByPosition, Why: why}, nil
}

func matched(from []int) *Match {
	m := &Match{By: ByName}
	for i, c := range from {
		if i != c {
			m.Moved++
		}
	}
	if m.Moved > 0 {
		m.from = from
	}
	return m
}

// matchNames returns the file's column of each name of the model, and the names that
// only one side has. Columns without a name are taken in their order.
func matchNames(model, file []string) (from []int, missing, extra []string) {
	at := make(map[string][]int, len(file))
	for i, name := range file {
		at[name] = append(at[name], i)
	}
	for _, name := range model {
		if len(at[name]) == 0 {
			missing = append(missing, name)
			continue
		}
		from = append(from, at[name][0])
		at[name] = at[name][1:]
	}
	for _, name := range file {
		if len(at[name]) > 0 {
			extra = append(extra, name)
			at[name] = at[name][1:]
		}
	}
	return from, missing, extra
}

// differ returns an error that says where the names of a model and of a file first differ,
// and how many are on one side only.
func differ(what string, model, file, missing, extra []string) error {
	i, hint := firstDifference(model, file), ""
	if what == "feature" && len(missing) == 0 {
		hint = "; --drop leaves columns out"
	}
	return fmt.Errorf("%s %d (counted from 0) differs: the model %s %s, the file has %s; missing from the file: %s; unknown to the model: %s%s",
		what, i, verb(what), quoted(model, i), quoted(file, i), listSome(missing), listSome(extra), hint)
}

// firstDifference returns the first position at which two lists differ.
func firstDifference(a, b []string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

func quoted(names []string, i int) string {
	if i >= len(names) {
		return "none"
	}
	return fmt.Sprintf("%q", names[i])
}

// listSome writes the number of names, and the first of them.
func listSome(names []string) string {
	const shown = 5
	if len(names) == 0 {
		return "none"
	}
	var list []string
	for i := range min(shown, len(names)) {
		list = append(list, quoted(names, i))
	}
	if len(names) > shown {
		list = append(list, "...")
	}
	return fmt.Sprintf("%s (%s)", units.Count(len(names)), strings.Join(list, ", "))
}

func verb(what string) string {
	if what == "label" {
		return "predicts"
	}
	return "reads"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", units.Count(n), what)
}

// defaultNames reports whether names are those that WriteCSV gives to columns without
// names, in any order.
func defaultNames(what string, names []string) bool {
	all := make([]string, len(names))
	for i := range all {
		all[i] = defaultName(what, i)
	}
	_, missing, _ := matchNames(all, names)
	return len(names) > 0 && len(missing) == 0
}

// defaultName is what WriteCSV calls column i without a name; a label's is without its
// prefix, as it is read.
func defaultName(what string, i int) string {
	if what == "label" {
		return strings.TrimPrefix(defaultLabelName(i), "label_")
	}
	return defaultFeatureName(i)
}

// cleanNames returns names without the blanks at their ends; none where all are empty.
func cleanNames(names []string) []string {
	clean := trimmed(names)
	if !slices.ContainsFunc(clean, func(name string) bool { return name != "" }) {
		return nil
	}
	return clean
}
