package main

import "testing"

func TestFlagsAreChecked(t *testing.T) {
	needed := []string{"--kubeconfig=file", "--log=log"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"valid":          {append(needed, "--nodes=3", "--first-node=7", "--lease-duration=4s"), ""},
		"no kubeconfig":  {[]string{"--log=log"}, "--kubeconfig and --log must be set"},
		"no log":         {[]string{"--kubeconfig=file"}, "--kubeconfig and --log must be set"},
		"half a second":  {append(needed, "--lease-duration=1500ms"), "--lease-duration=1.5s must be whole seconds"},
		"no time":        {append(needed, "--lease-duration=0s"), "--lease-duration=0s must be whole seconds"},
		"other argument": {append(needed, "more"), `unknown argument "more"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, _, err := parse(tc.args); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("parse says %q, want %q", got, tc.want)
			}
		})
	}
}
