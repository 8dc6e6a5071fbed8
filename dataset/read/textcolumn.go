package read

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
)

// textColumn has a text for each row, in two bytes a row.
type textColumn struct {
	rows  []uint16
	texts []string
	at    map[string]uint16
}

// add appends the text of a row.
func (c *textColumn) add(text string) error {
	i, ok := c.at[text]
	if !ok {
		if len(c.texts) == maxTexts {
			return fmt.Errorf("a column of texts has more than %s different values: %w", units.Count(maxTexts), dataset.ErrFormat)
		}
		if c.at == nil {
			c.at = map[string]uint16{}
		}
		text = strings.Clone(text)
		i = uint16(len(c.texts))
		c.texts, c.at[text] = append(c.texts, text), i
	}
	c.rows = append(c.rows, i)
	return nil
}

// text returns the text of a row.
func (c *textColumn) text(row int) string { return c.texts[c.rows[row]] }

// maxTexts bounds the different texts of a textColumn: there are at most as many classes, or groups.
const maxTexts = 1 << 16
