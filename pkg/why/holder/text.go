package holder

import (
	"strconv"
	"strings"
)

// quoted returns text from the cluster in quotes, in one line of limited length. Control
// characters and invalid UTF-8 are escaped.
func quoted(text string) string {
	const limit = 500
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " ..."
	}
	return strings.ReplaceAll(strconv.QuoteToGraphic(text), `\"`, `"`)
}
