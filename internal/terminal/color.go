package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// SupportsColor returns true if out is a terminal with colors, or if the user wants colors
// everywhere.
func SupportsColor(out io.Writer) bool {
	file, ok := out.(*os.File)
	return wantsColor(ok && term.IsTerminal(int(file.Fd())), os.Getenv)
}

// wantsColor returns false if the user sets NO_COLOR, true if the user sets CLICOLOR_FORCE, and
// otherwise true for a terminal with colors.
func wantsColor(terminal bool, getenv func(string) string) bool {
	switch forced := getenv("CLICOLOR_FORCE"); {
	case getenv("NO_COLOR") != "":
		return false
	case forced != "" && forced != "0":
		return true
	}
	return terminal && getenv("TERM") != "dumb"
}
