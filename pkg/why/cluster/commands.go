package cluster

import (
	"cmp"
	"strings"
)

// Commands writes command lines that can be pasted into a POSIX shell: quoted, with the namespace
// and with the flags of the connection, so that they reach the cluster that was read, as the same user.
type Commands struct {
	// Kubeconfig, Context, Cluster, Server, User, As and AsUID are the values of the flags, "" for the default.
	Kubeconfig, Context, Cluster, Server, User, As, AsUID string
	// AsGroups and AsExtra are those of flags that can be repeated: without its groups, a user has other rights.
	AsGroups, AsExtra []string
	// Program is how the user calls exeunt, such as kubectl exeunt; "" is exeunt.
	Program string
}

// Kubectl returns a kubectl command for the namespace, "" for none.
func (c Commands) Kubectl(namespace string, words ...string) string {
	return c.line("kubectl", namespace, words)
}

// Exeunt returns an exeunt command for the namespace, "" for none.
func (c Commands) Exeunt(namespace string, words ...string) string {
	return c.line(cmp.Or(c.Program, "exeunt"), namespace, words)
}

// Steps returns a next step that can be pasted: the sentence as a comment, then the commands.
// The commands lose nothing.
func Steps(sentence string, commands ...string) string {
	return strings.Join(append([]string{comment(sentence)}, commands...), "\n")
}

// LastResort returns a step that loses something as comments: who pastes it does nothing.
func LastResort(loss string, commands ...string) string {
	return Comments("last resort, "+loss, commands...)
}

// Comments returns the sentence and the commands as comments: who pastes them does nothing.
// The commands are one line, joined by &&: without "# " none runs after one that failed.
func Comments(sentence string, commands ...string) string {
	return comment(sentence+":") + "\n# " + strings.Join(commands, " && ")
}

// comment returns the sentence as a comment of one line.
func comment(sentence string) string {
	return "# " + strings.Join(strings.Fields(shellSyntax.Replace(sentence)), " ")
}

// shellSyntax replaces what a shell reads as more than a word: a sentence has names and messages of
// the cluster, some shells know no comments in pasted text, and some users take "# " off.
var shellSyntax = strings.NewReplacer(
	"'", "\u2019", `"`, "\u2019", "`", "\u2019", "(", "[", ")", "]", "{", "[", "}", "]", "<", "[", ">", "]",
	";", ",", "&", "+", "|", "/", `\`, "/", "$", "", "!", ".",
)

// Show returns a command that shows the object. The values of a Secret are never shown.
func (c Commands) Show(namespace, resource, name string, more ...string) string {
	if resource == "secrets" || resource == "secret" {
		return c.Kubectl(namespace, "describe", resource, name)
	}
	return c.Kubectl(namespace, append([]string{"get", resource, name, "-o", "yaml"}, more...)...)
}

func (c Commands) line(program, namespace string, words []string) string {
	line := append(strings.Fields(program), words...)
	if namespace != "" {
		line = append(line, "-n", namespace)
	}
	for _, flag := range [][2]string{{"--kubeconfig", c.Kubeconfig}, {"--context", c.Context}, {"--cluster", c.Cluster},
		{"--server", c.Server}, {"--user", c.User}, {"--as", c.As}, {"--as-uid", c.AsUID}} {
		if flag[1] != "" {
			line = append(line, flag[0], flag[1])
		}
	}
	for _, group := range c.AsGroups {
		line = append(line, "--as-group", group)
	}
	for _, extra := range c.AsExtra {
		line = append(line, "--as-user-extra", extra)
	}
	for i, word := range line {
		line[i] = Quote(word)
	}
	return strings.Join(line, " ")
}

// Quote returns the word as a POSIX shell reads it back.
func Quote(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%"
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
