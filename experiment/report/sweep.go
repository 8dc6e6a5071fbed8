package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// leastSweep is how many values of a setting make a sweep; beyond wideSweep times the least value above
// 0 the axis of the greatest is logarithmic.
const (
	leastSweep = 3
	wideSweep  = 20
)

// sweep is methods of one algorithm that differ in the number of one setting alone.
type sweep struct {
	algorithm, setting string
	others             map[string]string // the preset and the settings that are the same in all methods
	points             []point
}

// point is a method of a sweep: the number of the setting.
type point struct {
	method int
	value  float64
}

// sweepsOf finds the sweeps among methods: by algorithm, preset and the other settings, in the order
// of their first methods. A value that stands twice, in methods that
// are not the same, is no sweep.
func sweepsOf(methods []result.Method) (all []sweep) {
	at := make(map[string]int)
	for i := range methods {
		for _, setting := range slices.Sorted(maps.Keys(methods[i].Settings)) {
			value, ok := numberOf(methods[i].Settings[setting])
			if !ok {
				continue
			}
			others := othersOf(&methods[i], setting)
			key := strings.Join([]string{methods[i].Algorithm, setting, settingsText(others)}, "\x00")
			if _, ok := at[key]; !ok {
				at[key] = len(all)
				all = append(all, sweep{algorithm: methods[i].Algorithm, setting: setting, others: others})
			}
			s := &all[at[key]]
			s.points = append(s.points, point{i, value})
		}
	}
	for i := range all {
		s := &all[i]
		slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.value, b.value) })
		s.points = slices.CompactFunc(s.points, func(a, b point) bool {
			return a.value == b.value && methods[a.method].Same+methods[b.method].Same != ""
		})
	}
	return slices.DeleteFunc(all, func(s sweep) bool { return !s.valid() })
}

// numberOf reads a setting that is a finite number.
func numberOf(setting string) (float64, bool) {
	v, err := strconv.ParseFloat(setting, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// othersOf are the preset and the settings of a method without one.
func othersOf(r *result.Method, but string) map[string]string {
	others := maps.Clone(r.Settings)
	delete(others, but)
	if r.Preset != "" {
		others["preset"] = r.Preset
	}
	return others
}

// settingsText lists the preset and then the settings by name.
func settingsText(settings map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "preset" {
			list = append(list, name+"="+settings[name])
		}
	}
	if preset, ok := settings["preset"]; ok {
		list = append([]string{"preset=" + preset}, list...)
	}
	return strings.Join(list, " ")
}

// valid reports whether there are enough points, which are sorted, all different.
func (s *sweep) valid() bool {
	for i := 1; i < len(s.points); i++ {
		if s.points[i].value == s.points[i-1].value {
			return false
		}
	}
	return len(s.points) >= leastSweep
}
