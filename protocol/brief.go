package protocol

import "strings"

// BriefText is how many bytes of a text Brief keeps at the most, without its dots.
const BriefText = 200

// Brief returns the beginning of a text of unknown length, such as an error that another
// machine reports, for where many of them stand. It ends at a character's end.
func Brief(text string) string {
	if len(text) <= BriefText {
		return text
	}
	return strings.ToValidUTF8(text[:BriefText], "") + "..."
}
