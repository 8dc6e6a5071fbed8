package forest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// setting binds a described parameter to its field of Config.
type setting struct {
	algorithms.Param
	field func(*Config) any // *int, *float64 or *string
}

// settings lists what a spec may say, in the order of help texts.
var settings = []setting{
	intSetting("trees", "trees of the forest", "50", 1, 10_000, func(c *Config) any { return &c.Trees }),
	intSetting("max_depth", "greatest depth of a tree: the root has depth 0, a node at this depth is a leaf", "20", 1, maxDepth,
		func(c *Config) any { return &c.MaxDepth }),
	floatSetting("sampling_ratio", "draws, with replacement, of each tree's sample for each training row", "0.8", 0.0001, 1,
		func(c *Config) any { return &c.SamplingRatio }),
	intSetting("min_samples", "samples, copies counted, that a node needs to be split", "20", 2, maxDraws,
		func(c *Config) any { return &c.MinSamples }),
	{algorithms.Param{
		Name: "features", Kind: algorithms.Text, Default: featuresAll, Check: checkFeatures,
		Doc: "features tried at each node: all, sqrt, or a share of them such as 0.33",
	}, func(c *Config) any { return &c.Features }},
	{algorithms.Param{
		Name: "step", Kind: algorithms.Word, Default: stepExhaustive, Words: []string{stepExhaustive, stepAdaptive},
		Doc: "thresholds tried of a feature: exhaustive tries all, adaptive steps over poor ones (Eq. 5)",
	}, func(c *Config) any { return &c.Step }},
	floatSetting("alpha", "α of the adaptive step: how long steps are", "0.25", 1e-6, 1, func(c *Config) any { return &c.Alpha }),
	floatSetting("beta", "β of the adaptive step: how sharply steps shorten near the best gain", "8", 0, 100,
		func(c *Config) any { return &c.Beta }),
}

func intSetting(name, doc, def string, lo, hi float64, field func(*Config) any) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Int, Doc: doc, Default: def, Min: lo, Max: hi}, field}
}

func floatSetting(name, doc, def string, lo, hi float64, field func(*Config) any) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Float, Doc: doc, Default: def, Min: lo, Max: hi}, field}
}

// params lists the settings as help texts and specs see them.
func params() []algorithms.Param {
	list := make([]algorithms.Param, len(settings))
	for i := range settings {
		list[i] = settings[i].Param
	}
	return list
}

// resolve fills in what was not given and checks the result against the dataset.
// Errors are *algorithms.ParamError, or say that the dataset has no labels.
func resolve(algorithm string, given algorithms.Values, m *dataset.Manifest) (algorithms.Resolved, error) {
	if m.Labels == 0 {
		return algorithms.Resolved{}, fmt.Errorf("%s: the dataset has no labels", algorithm)
	}
	c := Default()
	if err := c.fill(algorithm, given); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := c.check(); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := c.checkDraws(m.Rows); err != nil {
		return algorithms.Resolved{}, err
	}
	raw, err := json.Marshal(&c)
	if err != nil {
		return algorithms.Resolved{}, fmt.Errorf("%s: settings: %w", algorithm, err)
	}
	return algorithms.Resolved{Params: raw}, nil
}

// fill writes the given values.
func (c *Config) fill(algorithm string, given algorithms.Values) error {
	used := 0
	for i := range settings {
		v, ok := given[settings[i].Name]
		if !ok {
			continue
		}
		used++
		if err := settings[i].set(c, v); err != nil {
			return err
		}
	}
	if used == len(given) {
		return nil
	}
	var unknown []string
	for name := range given {
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	return paramError(slices.Min(unknown), "%s has no such setting", algorithm)
}

// set writes a given value, of the type that its kind has in algorithms.Values.
func (s *setting) set(c *Config, value any) error {
	switch p := s.field(c).(type) {
	case *int:
		if v, ok := value.(int64); ok {
			*p = int(v)
			return nil
		}
	case *float64:
		if v, ok := value.(float64); ok {
			*p = v
			return nil
		}
	case *string:
		if v, ok := value.(string); ok {
			*p = v
			return nil
		}
	}
	return paramError(s.Name, "a %T is not %s", value, s.wanted())
}

// check reports a value outside the setting's range.
func (s *setting) check(c *Config) error {
	switch p := s.field(c).(type) {
	case *int:
		if v := float64(*p); v < s.Min || v > s.Max {
			return paramError(s.Name, "%d is not %s", *p, s.wanted())
		}
	case *float64:
		if math.IsNaN(*p) || *p < s.Min || *p > s.Max {
			return paramError(s.Name, "%v is not %s", *p, s.wanted())
		}
	case *string:
		return s.checkText(*p)
	}
	return nil
}

func (s *setting) checkText(v string) error {
	if s.Check != nil {
		if err := s.Check(v); err != nil {
			return paramError(s.Name, "%q: %v", v, err)
		}
		return nil
	}
	if !slices.Contains(s.Words, v) {
		return paramError(s.Name, "%q is not %s", v, s.wanted())
	}
	return nil
}

// wanted says what would be right.
func (s *setting) wanted() string {
	switch s.Kind {
	case algorithms.Int:
		return fmt.Sprintf("a whole number from %.0f to %.0f", s.Min, s.Max)
	case algorithms.Float:
		return fmt.Sprintf("a number from %v to %v", s.Min, s.Max)
	case algorithms.Word:
		return "one of " + strings.Join(s.Words, ", ")
	}
	return "a text"
}
