package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/figure"
)

// mostLines bounds the sweeps in one figure: more lines cannot be told apart.
const mostLines = 6

// family is sweeps of one algorithm by one setting that stand in one figure: they differ in one
// other setting with numbers at most, and in settings without.
type family []sweep

// familiesOf puts sweeps into families, in the order of the sweeps.
func familiesOf(all []sweep) (list []family) {
	for _, s := range all {
		at := slices.IndexFunc(list, func(f family) bool { return f.takes(&s) })
		if at < 0 {
			at = len(list)
			list = append(list, nil)
		}
		list[at] = append(list[at], s)
	}
	return list
}

// takes reports whether a sweep goes with those of the family.
func (f family) takes(s *sweep) bool {
	if len(f) >= mostLines || f[0].algorithm != s.algorithm || f[0].setting != s.setting {
		return false
	}
	numbers := 0
	all := append(slices.Clone(f), *s)
	for _, name := range differing(all) {
		if slices.ContainsFunc(all, func(s sweep) bool { _, ok := numberOf(s.others[name]); return ok }) {
			numbers++
		}
	}
	return numbers <= 1
}

// differing lists the settings, by name, that are not the same in all sweeps.
func differing(all []sweep) (names []string) {
	known := make(map[string]string)
	for i := range all {
		maps.Copy(known, all[i].others)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if slices.ContainsFunc(all, func(s sweep) bool { v, ok := s.others[name]; return !ok || v != known[name] }) {
			names = append(names, name)
		}
	}
	return names
}

// only keeps settings of the given names.
func only(settings map[string]string, names []string) map[string]string {
	some := make(map[string]string)
	for _, name := range names {
		if v, ok := settings[name]; ok {
			some[name] = v
		}
	}
	return some
}

// lineName names a sweep of the family by the settings that differ there.
func (f family) lineName(s *sweep) string {
	if len(f) == 1 {
		return s.algorithm
	}
	if text := settingsText(only(s.others, differing(f))); text != "" {
		return text
	}
	return "default"
}

// title names the algorithm, the setting and, where other families have the same, what sets this
// one apart.
func (f family) title(among []family) string {
	text := f[0].algorithm + " by " + f[0].setting
	var alike []sweep
	for _, other := range among {
		if other[0].algorithm == f[0].algorithm && other[0].setting == f[0].setting {
			alike = append(alike, other...)
		}
	}
	own := differing(f)
	names := slices.DeleteFunc(differing(alike), func(name string) bool { return slices.Contains(own, name) })
	if apart := settingsText(only(f[0].others, names)); apart != "" {
		text += ", " + apart
	}
	return text
}

// same are the settings that all sweeps of the family have, as text.
func (f family) same() string {
	own, names := differing(f), slices.Collect(maps.Keys(f[0].others))
	text := settingsText(only(f[0].others, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(own, name) })))
	if text == "" {
		return ""
	}
	return " All runs have " + strings.ReplaceAll(text, " ", ", ") + "."
}

// axis is that of the setting: logarithmic if a sweep goes far, with a place of its own for 0.
func (f family) axis() figure.Axis {
	a := figure.Axis{Name: f[0].setting}
	for _, s := range f {
		if s.points[0].value < 0 {
			return figure.Axis{Name: a.Name}
		}
		first := slices.IndexFunc(s.points, func(p point) bool { return p.value > 0 })
		a.Zero = a.Zero || first > 0
		a.Log = a.Log || first >= 0 && s.points[len(s.points)-1].value > wideSweep*s.points[first].value
	}
	return a
}
