package algorithms

import "fmt"

// Kind is the type of a setting.
type Kind uint8

// The kinds of settings.
const (
	Int Kind = iota
	Float
	Bool
	Word // one of Param.Words
	Text // Param.Check decides
)

// Param describes one setting of an algorithm: what a spec may say and what
// help and errors print.
type Param struct {
	Name    string
	Kind    Kind
	Doc     string  // one line
	Default string  // as help prints it
	Min     float64 // inclusive, for Int and Float
	Max     float64 // inclusive, for Int and Float
	Words   []string
	// Check, for Text, returns why a value is wrong.
	Check func(string) error
}

// Values are settings that a user gave: int64, float64, bool or string by
// Param.Kind. They come from ParseValue.
type Values map[string]any

// ParamError says which setting is wrong, why, and what would be right.
type ParamError struct {
	Name   string
	Reason string
}

func (e *ParamError) Error() string { return fmt.Sprintf("%s: %s", e.Name, e.Reason) }
