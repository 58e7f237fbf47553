package cluster

import "strings"

// Commands writes command lines that can be pasted into a POSIX shell: with the context and
// the namespace, and quoted.
type Commands struct {
	// Context is the kubeconfig context the user chose, or "" for the current one.
	Context string
}

// Kubectl returns a kubectl command for the namespace, "" for none.
func (c Commands) Kubectl(namespace string, words ...string) string {
	return c.line("kubectl", namespace, words)
}

// Exeunt returns an exeunt command for the namespace, "" for none.
func (c Commands) Exeunt(namespace string, words ...string) string {
	return c.line("exeunt", namespace, words)
}

func (c Commands) line(program, namespace string, words []string) string {
	line := []string{program}
	line = append(line, words...)
	if namespace != "" {
		line = append(line, "-n", namespace)
	}
	if c.Context != "" {
		line = append(line, "--context", c.Context)
	}
	for i, word := range line {
		line[i] = quote(word)
	}
	return strings.Join(line, " ")
}

// quote returns the word as a POSIX shell reads it back.
func quote(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%"
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
