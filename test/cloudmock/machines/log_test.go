package machines

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLineThatIsBeingWrittenIsNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	const line = `{"time":"2026-01-02T03:04:05.000000006Z","node":"mock-0","pod":"ns/web","uid":"1","volume":"","event":"started"}`
	for text, want := range map[string]int{"": 0, line: 0, line + "\n": 1, line + "\n" + line[:20]: 1} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		events, err := ReadLog(file)
		if err != nil || len(events) != want {
			t.Errorf("%q has events %v, %v; want %d", text, events, err, want)
		}
	}
}
