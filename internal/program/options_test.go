package program

import "testing"

func TestMissingLimitIsUpstreams(t *testing.T) {
	for name, tc := range map[string]struct{ given, want Limits }{
		"neither":        {Limits{}, Limits{}},
		"both":           {Limits{QPS: 50, Burst: 100}, Limits{QPS: 50, Burst: 100}},
		"a rate alone":   {Limits{QPS: 50}, Limits{QPS: 50, Burst: 10}},
		"a burst alone":  {Limits{Burst: 100}, Limits{QPS: 5, Burst: 100}},
		"none, as meant": {Limits{QPS: -1, Burst: 100}, Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			options := &Options{QPS: tc.given.QPS, Burst: tc.given.Burst, Upstream: Limits{QPS: 5, Burst: 10}}
			options.completeLimits()
			if got := (Limits{options.QPS, options.Burst}); got != tc.want {
				t.Errorf("the client has %+v, want %+v", got, tc.want)
			}
		})
	}
}
