package protocol

import (
	"errors"
	"fmt"
)

// MaxName is the greatest length, in bytes, of a job's or dataset's name.
const MaxName = 100

// CheckName reports why text cannot name a job or a dataset: it stands in URLs and file
// names. Names are 1 to MaxName letters, digits, '.', '_' and '-', and begin with a
// letter or digit. A name of digits only would read as a job's number.
func CheckName(text string) error {
	if text == "" || len(text) > MaxName {
		return fmt.Errorf("want a name of 1 to %d characters, got %d", MaxName, len(text))
	}
	digits := true
	for i, r := range text {
		digit := r >= '0' && r <= '9'
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digits = digits && digit
		switch {
		case digit || letter:
		case i == 0:
			return errors.New("a name must begin with a letter or digit")
		case r != '.' && r != '_' && r != '-':
			return fmt.Errorf("a name can have only letters, digits, '.', '_' and '-', not %q", r)
		}
	}
	if digits {
		return errors.New("a name cannot have only digits, because it would look like the number of a job")
	}
	return nil
}
