package printable

import "github.com/mattn/go-runewidth"

// columns does not depend on the language of this machine, as runewidth's default does.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns how many columns of a terminal a text takes: East Asian wide letters take two, and combining
// marks none.
func Width(text string) int { return columns.StringWidth(text) }
