package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// notes say which folds, rows and datasets count once in the report though the table has them several
// times.
func (g *grid) notes() (list []string) {
	for d := range g.table.Datasets {
		if text := g.repeated(d); text != "" {
			list = append(list, text)
		}
	}
	for i := range g.table.Rows {
		var names []string
		for _, r := range g.table.Rows {
			if r.Same == g.table.Rows[i].Name {
				names = append(names, r.Name)
			}
		}
		if len(names) > 0 {
			list = append(list, fmt.Sprintf("%s and %s are one method: their settings are the same on every dataset. The method is listed once and counts once in places, tests and ranks.",
				g.table.Rows[i].Name, strings.Join(names, ", ")))
		}
	}
	for i := range g.table.Datasets {
		d := &g.table.Datasets[i]
		if d.Same != "" {
			list = append(list, fmt.Sprintf("The datasets %s and %s have the same rows, labels and folds. Ranks count them once.", d.Same, d.Name))
			continue
		}
		for _, before := range g.table.Datasets[:i] {
			if before.Same == "" && before.Digest == d.Digest && d.Digest != "" {
				list = append(list, fmt.Sprintf("The datasets %s and %s have the same rows with other labels or folds. Ranks count both.", before.Name, d.Name))
				break
			}
		}
	}
	return list
}

// repeated says that folds of a dataset divide its rows alike; empty: no two do.
func (g *grid) repeated(d int) string {
	folds, divisions := len(g.folds[d]), len(g.divided[d])
	if folds == divisions {
		return ""
	}
	text := fmt.Sprintf("%s: %s folds divide the rows in %s, since repeats have the same folds. Values of the same folds are averaged first, so figures, tests and deviations are over %s.",
		g.table.Datasets[d].Name, units.Count(folds), count(divisions, "way", "ways"), count(divisions, "value", "values"))
	var equal []string
	for row := range g.table.Rows {
		if len(g.done[d][row]) == folds && !g.drawn(d, row) {
			equal = append(equal, g.table.Rows[row].Name)
		}
	}
	if len(equal) > 0 {
		text += " The repeats add nothing to " + strings.Join(equal, ", ") + ": they give the same values again."
	}
	return text
}

// names are those of a row and of the later rows that are the same.
func (s *Summary) names(row int) []string {
	names := []string{s.Rows[row].Name}
	for _, r := range s.Rows {
		if r.Same == names[0] {
			names = append(names, r.Name)
		}
	}
	return names
}

// mostNames bounds the length of the names of one row, in letters.
const mostNames = 60

// title is what a row is called in tables: all of its names, or the first and how many others there are.
func (s *Summary) title(row int) string {
	names := s.names(row)
	if text := strings.Join(names, " = "); len(names) == 1 || len(text) <= mostNames {
		return text
	}
	return names[0] + " = " + count(len(names)-1, "other", "others")
}

// listed lists the numbers of the rows that tables have: those that are not the same as an earlier one.
func (s *Summary) listed() []int { return listed(s.Rows) }

func (g *grid) listed() []int { return listed(g.table.Rows) }

func listed(all []result.Row) (rows []int) {
	for i := range all {
		if all[i].Same == "" {
			rows = append(rows, i)
		}
	}
	return rows
}

// publishedOf lists the lines of published figures of a row, under any of its names.
func publishedOf(names []string, all []publishedLine) (lines []line) {
	for _, p := range all {
		if slices.Contains(names, p.row) {
			lines = append(lines, p.line)
		}
	}
	return lines
}
