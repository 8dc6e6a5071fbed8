package param

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Table lists the settings of one algorithm, whose values are fields of C, in the order of
// help texts and of their JSON form.
type Table[C any] []Setting[C]

// presetName is the setting that selects among defaults.
const presetName = "preset"

// Params describes the settings.
func (t Table[C]) Params() []Param {
	params := make([]Param, len(t))
	for i, s := range t {
		params[i] = *s.Param()
		params[i].Default = s.defaults(t.first())
		params[i].Presets = t.presets(s)
	}
	return params
}

// presets lists the defaults of a setting with each preset.
func (t Table[C]) presets(s Setting[C]) (all []PresetDefault) {
	selects := t.find(presetName)
	if selects == nil || s.Param().Name == presetName {
		return nil
	}
	for _, name := range selects.Param().Words {
		all = append(all, PresetDefault{name, s.preset(name)})
	}
	return all
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
		if err := t.setPreset(s, c, given[presetName]); err != nil {
			return err
		}
		preset, _ = s.value(c).(string)
	}
	t.reset(c, preset)
	known := 0
	for _, s := range t {
		if value, ok := given[s.Param().Name]; ok {
			known++
			if err := s.set(c, value); err != nil {
				return err
			}
		}
	}
	if known == len(given) {
		return nil
	}
	return Errorf(t.firstUnknown(given), "%s has no such setting", owner)
}

func (t Table[C]) setPreset(s Setting[C], c *C, value any) error {
	if err := s.set(c, value); err != nil {
		return err
	}
	return check(s, c)
}

// firstUnknown returns the first name, in alphabetical order, that is no setting.
func (t Table[C]) firstUnknown(given Values) string {
	var unknown []string
	for name := range given {
		if t.find(name) == nil {
			unknown = append(unknown, name)
		}
	}
	return slices.Min(unknown)
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
		if s.leftOut(preset) && s.isDefault(c, preset) {
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
		if err := decode(d, s.pointer(c)); err != nil {
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
		switch name := s.Param().Name; {
		case seen[name] && s.leftOut(preset) && s.isDefault(c, preset):
			return fmt.Errorf("%s: the default value %v must be omitted", name, s.value(c))
		case seen[name]:
		case s.leftOut(preset):
			s.reset(c, preset)
		default:
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

// decode reads a value that is not null.
func decode(d *json.Decoder, into any) error {
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return err
	}
	if string(value) == "null" {
		return errors.New("the value is null")
	}
	return json.Unmarshal(value, into)
}
