package protocol

import "strings"

// BriefText is how many bytes of a text Brief keeps at the most, without its dots.
const BriefText = 200

// Brief shortens a text of unknown length, such as an error that another machine reports,
// for where many of them stand: a third of what is kept is its beginning, which says what
// failed, the rest its end, which says why. No character is cut in two.
func Brief(text string) string {
	if len(text) <= BriefText {
		return text
	}
	begin := text[:BriefText/3]
	end := text[len(text)-(BriefText-len(begin)):]
	return strings.ToValidUTF8(begin, "") + "..." + strings.ToValidUTF8(end, "")
}
