package reference

import (
	"strings"
	"testing"
)

// Words and files either fail with a sentence, or name objects of served kinds: with a name,
// and with a namespace only for kinds that have one.
func FuzzWordsAndFiles(f *testing.F) {
	f.Add("pv/x po/y")
	f.Add("pv,pvc x")
	f.Add("---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: other}\n---\n# nothing\n")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"x"}},{}]}`)
	f.Add(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"x"}},null,3]}`)
	f.Add("pod/x\npersistentvolume/y # comment\n")
	f.Add("kind: 3\nmetadata: []\nitems: {}")
	resolver := newResolver()
	f.Fuzz(func(t *testing.T, text string) {
		words, wordsErr := resolver.Words(strings.Fields(text))
		read, readErr := resolver.Read(strings.NewReader(text))
		for _, err := range []error{wordsErr, readErr} {
			if err != nil && strings.TrimSpace(err.Error()) == "" {
				t.Errorf("error of %q has no text", text)
			}
		}
		if wordsErr != nil {
			words = nil
		}
		if readErr != nil {
			read = nil
		}
		for _, ref := range append(words, read...) {
			namespaced := ref.Kind == "Pod" || ref.Kind == "PersistentVolumeClaim" || ref.Kind == "Deployment"
			if ref.Name == "" || ref.Resource.Resource == "" || namespaced != (ref.Namespace != "") {
				t.Errorf("%q names %+v", text, ref)
			}
		}
	})
}
