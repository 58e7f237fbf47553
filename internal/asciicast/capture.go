package asciicast

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Capture runs a command and returns the lines of its standard output.
func Capture(command *exec.Cmd) ([]Line, error) {
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open output of %s: %w", command.Path, err)
	}
	begun := time.Now()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	var lines []Line
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		lines = append(lines, Line{time.Since(begun), scanner.Text()})
	}
	if err := errors.Join(scanner.Err(), command.Wait()); err != nil {
		return nil, fmt.Errorf("record %s: %w", command.Path, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("record %s: the command printed nothing", command.Path)
	}
	return lines, nil
}
