package compose

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// flagReader reads the flags for the page /flagz. Upstream's type for them is in another package since 1.35.
type flagReader cliflag.NamedFlagSets

// GetFlagz returns the values of all flags, but not those that are classified.
func (r flagReader) GetFlagz() map[string]string {
	values := map[string]string{}
	for _, section := range r.FlagSets {
		section.VisitAll(func(flag *pflag.Flag) {
			values[flag.Name] = flag.Value.String()
			if len(flag.Annotations["classified"]) > 0 {
				values[flag.Name] = "CLASSIFIED"
			}
		})
	}
	return values
}
