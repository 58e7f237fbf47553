package compose

import (
	"maps"
	"testing"

	cliflag "k8s.io/component-base/cli/flag"
)

func TestClassifiedFlagIsNotShown(t *testing.T) {
	var sections cliflag.NamedFlagSets
	sections.FlagSet("a").String("open", "x", "")
	secret := sections.FlagSet("b")
	secret.String("secret", "y", "")
	if err := secret.SetAnnotation("secret", "classified", []string{"true"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"open": "x", "secret": "CLASSIFIED"}
	if got := flagReader(sections).GetFlagz(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
