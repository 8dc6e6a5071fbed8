package param

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Setting is a setting that is bound to a field of a C; the functions of this file make it.
type Setting[C any] interface {
	// Param describes the setting, but for the text of its defaults.
	Param() *Param
	// leftOut reports whether the JSON form leaves the setting out with this preset: see Of.LeftOut.
	leftOut(preset string) bool
	// isDefault reports whether the field has the default of a preset.
	isDefault(c *C, preset string) bool
	// defaults is the text of the defaults; first is the name of the first preset.
	defaults(first string) string
	// preset is the text of the default of one preset.
	preset(name string) string
	// reset writes the default that a preset has.
	reset(c *C, preset string)
	// set writes a given value, of the type that its kind has in Values.
	set(c *C, value any) error
	// value returns the field's value as Values holds it.
	value(c *C) any
	// pointer returns the field, which encoding/json reads into.
	pointer(c *C) any
}

// Of is a setting whose field is of type T: int, float64, bool or string.
type Of[C any, T comparable] struct {
	param   Param
	field   func(*C) *T
	def     T
	presets []presetOf[T]
}

// presetOf is the default of one preset.
type presetOf[T any] struct {
	name string
	def  T
}

// Int is a whole number from lo to hi.
func Int[C any](name, doc string, lo, hi, def int, field func(*C) *int) *Of[C, int] {
	return newOf(Param{Name: name, Kind: KindInt, Doc: doc, Min: float64(lo), Max: float64(hi)}, def, field)
}

// Float is a number from lo to hi.
func Float[C any](name, doc string, lo, hi, def float64, field func(*C) *float64) *Of[C, float64] {
	return newOf(Param{Name: name, Kind: KindFloat, Doc: doc, Min: lo, Max: hi}, def, field)
}

// Bool is true or false.
func Bool[C any](name, doc string, def bool, field func(*C) *bool) *Of[C, bool] {
	return newOf(Param{Name: name, Kind: KindBool, Doc: doc}, def, field)
}

// Word is one of some words, of which the first is the default.
func Word[C any](name, doc string, field func(*C) *string, words ...string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindWord, Doc: doc, Words: words}, words[0], field)
}

// Text is a text that check does not refuse; form says what such texts look like.
func Text[C any](name, doc, form, def string, check func(string) error, field func(*C) *string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindText, Doc: doc, Form: form, Check: check}, def, field)
}

// Items is a list of items, each of which a spec file names by key.
func Items[C any](name, doc, key, def string, check func(string) error, field func(*C) *string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindText, Doc: doc, Form: ItemsForm, Check: check, ItemKey: key}, def, field)
}

func newOf[C any, T comparable](p Param, def T, field func(*C) *T) *Of[C, T] {
	return &Of[C, T]{param: p, field: field, def: def}
}

// Preset gives the default of a preset, a word of the setting "preset", where it differs from
// that of the first one.
func (s *Of[C, T]) Preset(name string, def T) *Of[C, T] {
	s.presets = append(s.presets, presetOf[T]{name, def})
	return s
}

// NotWritten leaves the setting out of the JSON form: it selects among defaults, and they are
// written. So a preset can be added to an algorithm whose jobs have none.
func (s *Of[C, T]) NotWritten() *Of[C, T] {
	s.param.NotWritten = true
	return s
}

// LeftOut leaves the setting out of the JSON form where it has the default of this preset, and the preset is
// the job's. So a setting can be added to an algorithm, and jobs of the preset keep their JSON form and
// their digest.
func (s *Of[C, T]) LeftOut(preset string) *Of[C, T] {
	s.param.LeftOut = preset
	return s
}

// DefaultLeftOut leaves the setting out of the JSON form where it has its default. So a setting can be added to an algorithm
// whose jobs have no preset in that form.
func (s *Of[C, T]) DefaultLeftOut() *Of[C, T] {
	s.param.DefaultLeftOut = true
	return s
}

// InPaper says that the paper of the algorithm gives the default of the preset "paper".
func (s *Of[C, T]) InPaper() *Of[C, T] {
	s.param.InPaper = true
	return s
}

// Says gives the text of a default that follows from the data or from other settings, which
// an algorithm's Fill computes.
func (s *Of[C, T]) Says(text string) *Of[C, T] {
	s.param.Default = text
	return s
}

func (s *Of[C, T]) defaults(first string) string {
	if s.param.Default != "" || len(s.presets) == 0 {
		return cmp.Or(s.param.Default, plain(s.def))
	}
	text := first + ": " + plain(s.def)
	for _, p := range s.presets {
		text += "; " + p.name + ": " + plain(p.def)
	}
	return text
}

// preset returns what the text of the defaults says of a preset. The text has parts between semicolons: "auto: X" and "auto with
// a network: X" are of the preset auto alone, and a part without the name of a preset is of all.
func (s *Of[C, T]) preset(name string) string {
	var parts []string
	for part := range strings.SplitSeq(s.param.Default, "; ") {
		switch word, rest, _ := strings.Cut(part, " "); word {
		case name, name + ":":
			parts = append(parts, rest)
		case "auto", "auto:", "paper", "paper:":
		default:
			parts = append(parts, part)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), plain(s.of(name)))
}

// plain returns a value as users write it.
func plain(v any) string {
	if f, ok := v.(float64); ok {
		return strings.NewReplacer("e-0", "e-", "e+0", "e").Replace(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return fmt.Sprint(v)
}

// Param implements Setting.
func (s *Of[C, T]) Param() *Param { return &s.param }

func (s *Of[C, T]) reset(c *C, preset string) { *s.field(c) = s.of(preset) }

func (s *Of[C, T]) leftOut(preset string) bool {
	return s.param.DefaultLeftOut || preset != "" && preset == s.param.LeftOut
}

func (s *Of[C, T]) isDefault(c *C, preset string) bool { return *s.field(c) == s.of(preset) }

// of returns the default of a preset.
func (s *Of[C, T]) of(name string) T {
	for _, p := range s.presets {
		if p.name == name {
			return p.def
		}
	}
	return s.def
}

func (s *Of[C, T]) set(c *C, value any) error {
	if v, ok := value.(int64); ok {
		value = int(v)
	}
	v, ok := value.(T)
	if !ok {
		return Errorf(s.param.Name, "a %T is not %s", value, s.param.Wanted())
	}
	*s.field(c) = v
	return nil
}

func (s *Of[C, T]) value(c *C) any {
	if v, ok := any(*s.field(c)).(int); ok {
		return int64(v)
	}
	return *s.field(c)
}

func (s *Of[C, T]) pointer(c *C) any { return s.field(c) }
