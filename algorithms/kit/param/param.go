// Package param describes settings: what a job spec may say, what is refused and why, what help
// and documents print, and how the settings of a job are written as JSON. An algorithm has one
// Table of its settings, and all of these come from it.
package param

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Kind is the type of a setting.
type Kind uint8

// The kinds of settings.
const (
	KindInt Kind = iota
	KindFloat
	KindBool
	KindWord // one of Param.Words
	KindText // Param.Check decides
)

// Param describes one setting.
type Param struct {
	Name    string
	Kind    Kind
	Doc     string // one line
	Default string // as help prints it
	// Presets lists the defaults of each preset of the table, but for the setting that selects one.
	Presets []PresetDefault
	// InPaper is true if the paper of the algorithm itself gives the default of the preset "paper".
	InPaper bool
	Min     float64 // inclusive, of numbers
	Max     float64 // inclusive, of numbers
	Words   []string
	Form    string // of texts: what they look like
	// Check, of texts, returns why a value is wrong.
	Check func(string) error
	// ItemKey, where set, says that the text is a list of items (ParseItems), and is the key
	// of an item's name: a spec file may have a list of mappings instead of the text.
	ItemKey string
	// NotWritten says that the setting only selects among defaults, and that the JSON form has
	// what it selects.
	NotWritten bool
	// LeftOut is the preset, if any, whose jobs have the setting in their JSON form only where it is not
	// the preset's default.
	LeftOut string
	// DefaultLeftOut says that the JSON form has the setting only where it is not the default, whatever the preset.
	DefaultLeftOut bool
}

// PresetDefault is the default of a setting with one preset.
type PresetDefault struct {
	Preset string // the name of the preset
	Text   string // the default as help prints it
	Value  string // the default without rules that follow from the data or from other settings
}

// Of returns the text of the default with a preset: Default if the setting has no defaults of presets.
func (p *Param) Of(preset string) string {
	for _, d := range p.Presets {
		if d.Preset == preset {
			return d.Text
		}
	}
	return p.Default
}

// leftOut reports whether the JSON form leaves the setting out if it has the default of this preset.
func (p *Param) leftOut(preset string) bool {
	return p.DefaultLeftOut || preset != "" && preset == p.LeftOut
}

// Values are settings that a user gave: int64, float64, bool or string by Param.Kind. They
// come from Param.Parse.
type Values map[string]any

// Has reports whether a setting was given.
func (v Values) Has(name string) bool {
	_, ok := v[name]
	return ok
}

// The words of the setting preset. Auto is the default; with Paper, settings have the values of the algorithm's paper.
const (
	Auto  = "auto"
	Paper = "paper"
)

// StandIn sets the field of a setting that was not given to a default that follows from the data or
// from other settings.
func StandIn[T any](given Values, name string, field *T, value T) {
	if !given.Has(name) {
		*field = value
	}
}

// Error says which setting is wrong, why, and what would be right.
type Error struct {
	Name   string
	Reason errtext.Text
}

// Error returns the name and the reason.
func (e *Error) Error() string { return e.Name + ": " + e.Reason.String() }

// Formed implements errtext.Formed.
func (e *Error) Formed() (errtext.Code, errtext.Text) {
	return errtext.WrongSetting, errtext.Sprintf("{set:%s}: %s", e.Name, e.Reason)
}

// Errorf returns an *Error about a setting.
func Errorf(name, format string, args ...any) error {
	return &Error{Name: name, Reason: errtext.Sprintf(format, args...)}
}

// Parse reads a value of a setting: int64, float64, bool or string, as Values holds them.
// Errors are *Error and say what would be right.
func (p *Param) Parse(text string) (any, error) {
	quoted := strconv.Quote(text)
	switch p.Kind {
	case KindInt:
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v, p.check(v, quoted)
		}
	case KindFloat:
		// Go's hexadecimal forms, underscores, NaN and infinities are no numbers here.
		if v, err := strconv.ParseFloat(text, 64); err == nil && strings.Trim(text, "0123456789.eE+-") == "" {
			return v, p.check(v, quoted)
		}
	case KindBool:
		if text == "true" || text == "false" {
			return text == "true", nil
		}
	default:
		return text, p.check(text, quoted)
	}
	return nil, p.wrong(quoted)
}

// check reports a value outside the setting's range; shown is the value as the error has it.
func (p *Param) check(value any, shown string) error {
	right := true
	switch v := value.(type) {
	case int64:
		right = float64(v) >= p.Min && float64(v) <= p.Max
	case float64:
		right = v >= p.Min && v <= p.Max // and not NaN
	case string:
		if p.Kind == KindWord {
			right = slices.Contains(p.Words, v)
		} else if p.Check != nil {
			if err := p.Check(v); err != nil {
				return Errorf(p.Name, "%s: %v", shown, err)
			}
		}
	}
	if right {
		return nil
	}
	return p.wrong(shown)
}

func (p *Param) wrong(value string) error {
	if p.Kind == KindBool {
		return Errorf(p.Name, "%s is not {:true} or {:false}", value)
	}
	return Errorf(p.Name, "%s is not %s", value, p.Wanted())
}

// Wanted says what values a setting takes: "a whole number from 2 to 20".
func (p *Param) Wanted() string {
	switch p.Kind {
	case KindInt:
		return fmt.Sprintf("a whole number from %.0f to %.0f", p.Min, p.Max)
	case KindFloat:
		if p.Max == math.Nextafter(1, 0) {
			return fmt.Sprintf("a number from %s to below 1", plain(p.Min))
		}
		return fmt.Sprintf("a number from %s to %s", plain(p.Min), plain(p.Max))
	case KindBool:
		return "true or false"
	case KindWord:
		if len(p.Words) == 1 {
			return p.Words[0]
		}
		last := len(p.Words) - 1
		return strings.Join(p.Words[:last], ", ") + " or " + p.Words[last]
	}
	if p.Form != "" {
		return p.Form
	}
	return "a text"
}

// lookalikes are hints at words that only look like a word that exists, by the word as it is asked for.
var lookalikes = map[string]struct{ like, hint string }{
	"min-samples-leaf": {"min_samples", " (a leaf has no minimum of samples; min_samples is the number of samples that " +
		"a node needs to be split)"},
}

// Suggest returns a hint at the word that is closest to text, such as ` (did you mean
// "depth"?)`, or "" where none is near.
func Suggest(text string, words []string) string {
	if l, ok := lookalikes[fold(text)]; ok && slices.Contains(words, l.like) {
		return l.hint
	}
	best, least := "", maxHint
	for _, w := range words {
		if d := distance(fold(text), fold(w)); d < least && Near(text, w) {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// Near reports whether one text may be a slip of the pen for the other: at most a third of the longer one
// is other letters, and one letter in any case, but of a text of one letter.
func Near(a, b string) bool {
	a, b = fold(a), fold(b)
	longer, shorter := max(len(a), len(b)), min(len(a), len(b))
	return shorter > 0 && longer > 1 && longer <= maxHint && distance(a, b) <= max(1, longer/3)
}

// fold makes texts equal that differ in capitals, or in what stands between words.
func fold(text string) string {
	return strings.ReplaceAll(strings.ToLower(text), "_", "-")
}

// maxHint bounds the texts that are compared, in bytes.
const maxHint = 64

// distance is how many letters to insert, to delete, to replace or to swap with their neighbour make b of
// a, where no part is changed twice; maxHint, where a text is longer than that.
func distance(a, b string) int {
	if len(a) > maxHint || len(b) > maxHint {
		return maxHint
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			}
			row[j+1] = min(row[j+1], last[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// Item is one of a list, such as an algorithm: a name, and settings in the order given.
type Item struct {
	Name string
	Set  []Pair
}

// Pair is a setting of an Item, as text.
type Pair struct{ Key, Value string }

// ItemsForm says what a list of items looks like.
const ItemsForm = "NAME,NAME,..., each optionally with settings: NAME:KEY=VALUE:KEY=VALUE"

// special are the characters for which a name, a key or a value stands in quotes.
const special = ",:=\"\\"

// FormatItems returns the one text of a list: a:x=1:y=2,b. Names, keys and values with other
// characters than the usual ones are quoted as in JSON.
func FormatItems(items []Item) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(item.Name))
		for _, p := range item.Set {
			b.WriteString(":" + quoted(p.Key) + "=" + quoted(p.Value))
		}
	}
	return b.String()
}

func quoted(word string) string {
	if word == "" || strings.ContainsAny(word, special) || strings.ContainsFunc(word, func(c rune) bool {
		return c <= ' ' || c >= 127
	}) {
		return strconv.QuoteToASCII(word)
	}
	return word
}

// ParseItems reads what FormatItems writes; spaces may stand around names, keys and values. An
// error says what is wrong.
func ParseItems(text string) (items []Item, err error) {
	for first := true; first || text != ""; first = false {
		if !first {
			text = text[1:] // the comma
		}
		var item Item
		if item, text, err = parseItem(text); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// parseItem reads an item up to the comma after it.
func parseItem(text string) (item Item, rest string, err error) {
	if item.Name, rest, err = word(text); err != nil {
		return item, "", err
	}
	for strings.HasPrefix(rest, ":") {
		var p Pair
		if p.Key, rest, err = word(rest[1:]); err != nil {
			return item, "", fmt.Errorf("after %s: %w", item.Name, err)
		}
		if !strings.HasPrefix(rest, "=") {
			return item, "", fmt.Errorf("%s: want KEY=VALUE after the colon, got %q", item.Name, p.Key)
		}
		if p.Value, rest, err = word(rest[1:]); err != nil {
			return item, "", fmt.Errorf("%s: %s: %w", item.Name, p.Key, err)
		}
		item.Set = append(item.Set, p)
	}
	if rest != "" && rest[0] != ',' {
		return item, "", fmt.Errorf("%s: want a comma or a colon before %.20q", item.Name, rest)
	}
	return item, rest, nil
}

var errNoWord = errors.New("a name, a key or a value is missing")

// word reads a name, a key or a value, in quotes or up to the next special character.
func word(text string) (w, rest string, err error) {
	text = strings.TrimLeft(text, " ")
	if strings.HasPrefix(text, `"`) {
		in, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("the closing quote is missing after %.20q", text)
		}
		w, err = strconv.Unquote(in)
		return w, strings.TrimLeft(text[len(in):], " "), err
	}
	end := strings.IndexAny(text, special)
	if end < 0 {
		end = len(text)
	}
	if w = strings.TrimRight(text[:end], " "); w == "" {
		return "", "", errNoWord
	}
	return w, text[end:], nil
}
