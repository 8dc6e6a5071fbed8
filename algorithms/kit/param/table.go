package param

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Table lists the settings of one algorithm, whose values are fields of C, in the order of
// help texts and of their JSON form.
type Table[C any] []Setting[C]

// presetName is the setting that selects among defaults.
const presetName = "preset"

// Setting is a setting that is bound to a field of a C; the functions of this file make it.
type Setting[C any] interface {
	// Param describes the setting, but for the text of its defaults.
	Param() *Param
	// describe describes the setting of a table with these presets.
	describe(presets []string) Param
	// isDefault reports whether the field has the default of a preset.
	isDefault(c *C, preset string) bool
	// reset writes the default that a preset has.
	reset(c *C, preset string)
	// set writes a given value, of the type that its kind has in Values.
	set(c *C, value any) error
	// value returns the field's value as Values holds it.
	value(c *C) any
	// pointer returns the field, which encoding/json reads into.
	pointer(c *C) any
}

// Of is a setting with a field of type T: int, float64, bool or string.
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

// Word is a setting with one of some words as its value. The first word is the default.
func Word[C any](name, doc string, field func(*C) *string, words ...string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindWord, Doc: doc, Words: words}, words[0], field)
}

// Text is a text that check does not refuse; form says what such texts look like.
func Text[C any](name, doc, form, def string, check func(string) error, field func(*C) *string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindText, Doc: doc, Form: form, Check: check}, def, field)
}

// Items is a list of items. A spec file names each item by a key.
func Items[C any](name, doc, key, def string, check func(string) error, field func(*C) *string) *Of[C, string] {
	return newOf(Param{Name: name, Kind: KindText, Doc: doc, Form: ItemsForm, Check: check, ItemKey: key}, def, field)
}

func newOf[C any, T comparable](p Param, def T, field func(*C) *T) *Of[C, T] {
	return &Of[C, T]{param: p, field: field, def: def}
}

// Preset gives the default of a preset, a word of the setting "preset", if it differs from
// the default of the first preset.
func (s *Of[C, T]) Preset(name string, def T) *Of[C, T] {
	s.presets = append(s.presets, presetOf[T]{name, def})
	return s
}

// NotWritten leaves the setting out of the JSON form: it selects among defaults, and they are
// written. So a preset can be added to an algorithm if its jobs have none.
func (s *Of[C, T]) NotWritten() *Of[C, T] {
	s.param.NotWritten = true
	return s
}

// LeftOut leaves the setting out of the JSON form if it has the default of this preset, and the preset is
// the job's. So a setting can be added to an algorithm, and jobs of the preset keep their JSON form and
// their digest.
func (s *Of[C, T]) LeftOut(preset string) *Of[C, T] {
	s.param.LeftOut = preset
	return s
}

// DefaultLeftOut leaves the setting out of the JSON form if it has its default. So a setting can be added to an
// algorithm if its jobs have no preset in that form.
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

// Param implements Setting.
func (s *Of[C, T]) Param() *Param { return &s.param }

func (s *Of[C, T]) describe(presets []string) Param {
	d := s.param
	if d.Default == "" {
		d.Default = plain(s.def)
		for i, p := range s.presets {
			if i == 0 {
				d.Default = presets[0] + ": " + d.Default
			}
			d.Default += "; " + p.name + ": " + plain(p.def)
		}
	}
	if d.Name != presetName {
		for _, name := range presets {
			d.Presets = append(d.Presets, PresetDefault{name, s.preset(name), plain(s.of(name))})
		}
	}
	return d
}

// preset returns what the text of the defaults says of a preset. The text has parts between semicolons: "auto: X" and
// "auto with a network: X" are of the preset auto alone, and a part without the name of a preset is of all.
func (s *Of[C, T]) preset(name string) string {
	var parts []string
	for part := range strings.SplitSeq(s.param.Default, "; ") {
		switch word, rest, _ := strings.Cut(part, " "); word {
		case name, name + ":":
			parts = append(parts, rest)
		case "auto", "auto:", "paper", "paper:", "best", "best:":
		default:
			parts = append(parts, part)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), plain(s.of(name)))
}

// plain returns a value as users write it.
func plain(v any) string {
	if f, ok := v.(float64); ok {
		return plainExponent.Replace(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return fmt.Sprint(v)
}

var plainExponent = strings.NewReplacer("e-0", "e-", "e+0", "e")

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

func (s *Of[C, T]) reset(c *C, preset string) { *s.field(c) = s.of(preset) }

func (s *Of[C, T]) set(c *C, value any) error {
	if v, ok := value.(int64); ok {
		value = int(v)
	}
	v, ok := value.(T)
	if !ok {
		return Errorf(s.param.Name, "a %s is not %s", fmt.Sprintf("%T", value), s.param.Wanted())
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

// Params describes the settings.
func (t Table[C]) Params() []Param {
	var presets []string
	if s := t.find(presetName); s != nil {
		presets = s.Param().Words
	}
	params := make([]Param, len(t))
	for i, s := range t {
		params[i] = s.describe(presets)
	}
	return params
}

// Default returns the defaults of the first preset.
func (t Table[C]) Default() *C {
	c := new(C)
	t.reset(c, t.first())
	return c
}

// first returns the name of the first preset, "" if there are none.
func (t Table[C]) first() string {
	if s := t.find(presetName); s != nil {
		return s.Param().Words[0]
	}
	return ""
}

func (t Table[C]) reset(c *C, preset string) {
	for _, s := range t {
		s.reset(c, preset)
	}
}

// written lists the settings that the JSON form has.
func (t Table[C]) written() Table[C] {
	return slices.DeleteFunc(slices.Clone(t), func(s Setting[C]) bool { return s.Param().NotWritten })
}

// preset returns the preset of c, "" if there are none.
func (t Table[C]) preset(c *C) string {
	s := t.find(presetName)
	if s == nil {
		return ""
	}
	word, _ := s.value(c).(string)
	return word
}

// find returns a setting, or nil.
func (t Table[C]) find(name string) Setting[C] {
	i := slices.IndexFunc(t, func(s Setting[C]) bool { return s.Param().Name == name })
	if i < 0 {
		return nil
	}
	return t[i]
}

// Fill writes the defaults of the preset that was given, then the given values. owner is whose
// settings these are, for the error about an unknown one. Errors are *Error; ranges are left
// to Check.
func (t Table[C]) Fill(c *C, given Values, owner string) error {
	preset := t.first()
	if s := t.find(presetName); s != nil && given.Has(presetName) {
		if err := s.set(c, given[presetName]); err != nil {
			return err
		}
		if err := check(s, c); err != nil {
			return err
		}
		preset = t.preset(c)
	}
	t.reset(c, preset)
	for _, s := range t {
		if value, ok := given[s.Param().Name]; ok {
			if err := s.set(c, value); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if t.find(name) == nil {
			return Errorf(name, "%s has no such setting", owner)
		}
	}
	return nil
}

// Check returns an *Error about the first setting of the JSON form that is out of its range.
func (t Table[C]) Check(c *C) error {
	for _, s := range t.written() {
		if err := check(s, c); err != nil {
			return err
		}
	}
	return nil
}

func check[C any](s Setting[C], c *C) error {
	v := s.value(c)
	if text, ok := v.(string); ok {
		return s.Param().check(v, fmt.Sprintf("%q", text))
	}
	return s.Param().check(v, fmt.Sprint(v))
}

// Values returns all settings of the JSON form as if they had been given.
func (t Table[C]) Values(c *C) Values {
	values := make(Values, len(t))
	for _, s := range t.written() {
		values[s.Param().Name] = s.value(c)
	}
	return values
}

// JSON returns the JSON form: an object with every setting but those that are not written or left out, in the
// table's order, so that equal settings have equal bytes.
func (t Table[C]) JSON(c *C) (json.RawMessage, error) {
	var b bytes.Buffer
	separator, preset := "{", t.preset(c)
	for _, s := range t.written() {
		if s.Param().leftOut(preset) && s.isDefault(c, preset) {
			continue
		}
		value, err := json.Marshal(s.value(c))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Param().Name, err)
		}
		fmt.Fprintf(&b, "%s%q:%s", separator, s.Param().Name, value)
		separator = ","
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Parse reads the JSON form strictly: a setting that is missing, unknown, given twice, of another
// type or out of its range is an error, and so is one that JSON leaves out. Errors about a range are *Error.
func (t Table[C]) Parse(raw json.RawMessage) (*C, error) {
	t = t.written()
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("they are not a JSON object")
	}
	c, seen := new(C), make(map[string]bool, len(t))
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		s := t.find(name)
		if s == nil || seen[name] {
			return nil, fmt.Errorf("%q is unknown or occurs twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err = d.Decode(&value); err == nil && string(value) == "null" {
			err = errors.New("the value is null")
		}
		if err == nil {
			err = json.Unmarshal(value, s.pointer(c))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more text follows after the JSON object")
	}
	if err := t.complete(c, seen); err != nil {
		return nil, err
	}
	return c, t.Check(c)
}

// complete gives the settings that JSON leaves out their values; it returns an error where another one is not
// among those that were seen, or where one of these is left out.
func (t Table[C]) complete(c *C, seen map[string]bool) error {
	preset := t.preset(c)
	for _, s := range t {
		p := s.Param()
		switch name := p.Name; {
		case seen[name] && p.leftOut(preset) && s.isDefault(c, preset):
			return fmt.Errorf("%s: the default value %v must be omitted", name, s.value(c))
		case seen[name]:
		case p.leftOut(preset):
			s.reset(c, preset)
		default:
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}
