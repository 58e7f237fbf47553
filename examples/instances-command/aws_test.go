package main

import (
	"slices"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// byGroup and direct are the calls that end a machine.
const (
	byGroup = "autoscaling terminate-instance-in-auto-scaling-group " +
		"--instance-id i-0abc --no-should-decrement-desired-capacity"
	direct = "ec2 terminate-instances --instance-ids i-0abc"
)

// described is what the AWS CLI prints of a machine: its state, the number of tags of cluster and group, the root
// device, and the devices that are deleted with the machine.
func described(state, tags, groups, deleted string) string {
	return state + "\t" + tags + "\t" + groups + "\t/dev/xvda\t" + deleted
}

type awsCase struct {
	verb, described string
	want            want
	ends            bool // the machine
}

var awsCases = map[string]awsCase{
	"pending":                           {"get", described("pending", "1", "1", ""), is(Running), false},
	"running":                           {"get", described("running", "1", "1", "/dev/xvda"), is(Running), false},
	"shutting down":                     {"get", described("shutting-down", "1", "1", ""), is(Stopping), false},
	"stopping":                          {"get", described("stopping", "1", "1", ""), is(Stopping), false},
	"stopped":                           {"get", described("stopped", "1", "1", ""), is(Off), false},
	"absent":                            {"get", "", is(Gone), false},
	"of another cluster":                {"get", described("running", "0", "1", ""), is(Foreign), false},
	"new state":                         {"get", described("asleep", "1", "1", ""), fails("unknown state asleep"), false},
	"unknown call":                      {"start", described("running", "1", "1", ""), fails("unknown call start"), false},
	"terminated, and its tags are gone": {"get", described("terminated", "0", "0", ""), is(Gone), false},

	"stop of another cluster": {"stop", described("running", "0", "1", ""), is(Foreign), false},
	"stop":                    {"stop", described("running", "1", "1", "/dev/xvda /dev/xvdb"), is(Stopping), true},
	"stop of what starts":     {"stop", described("pending", "1", "1", ""), is(Stopping), true},
	"stop outside of groups":  {"stop", described("running", "1", "0", ""), refuses("no Auto Scaling"), false},
	"stop of what stops":      {"stop", described("stopping", "1", "1", ""), is(Stopping), false},
	"stop of what is off":     {"stop", described("stopped", "1", "1", ""), is(Off), false},
	"stop of what is gone":    {"stop", described("terminated", "0", "0", ""), is(Gone), false},
	"stop of what shuts down": {"stop", described("shutting-down", "1", "1", "/dev/xvdaa"), is(Stopping), false},
	"stop that would delete a volume": {"stop", described("running", "1", "1", "/dev/xvda /dev/xvdaa"),
		refuses("would delete the volume at /dev/xvdaa"), false},

	"delete of another cluster":    {"delete", described("stopped", "0", "1", ""), is(Foreign), false},
	"delete of what shuts down":    {"delete", described("shutting-down", "1", "1", ""), is(Stopping), false},
	"delete of what is off":        {"delete", described("stopped", "1", "1", ""), is(Stopping), true},
	"delete of what stops":         {"delete", described("stopping", "1", "1", ""), is(Stopping), true},
	"delete with disks of its own": {"delete", described("running", "1", "1", "/dev/xvdc"), is(Stopping), true},
	"delete outside of groups":     {"delete", described("running", "1", "0", ""), refuses("no Auto Scaling"), false},
}

func TestAWSMachines(t *testing.T) {
	t.Setenv("EXEUNT_CLUSTER", "prod")
	t.Setenv("EXEUNT_MACHINE_DEVICES", "/dev/xvdb")
	for name, tc := range awsCases {
		t.Run(name, func(t *testing.T) {
			calls := stub(t, "aws", answer{words: "ec2 describe-instances", stdout: tc.described},
				answer{words: byGroup}, answer{words: direct})
			call(t, "aws-autoscaling.sh", tc.verb, machine, tc.want)
			first, _, _ := strings.Cut(calls(), "\n")
			if !strings.Contains(first, "Name=instance-id,Values=i-0abc") ||
				!strings.Contains(first, "kubernetes.io/cluster/prod'") {
				t.Errorf("the first call is %q", first)
			}
			var want []string
			if tc.ends {
				want = []string{byGroup, direct}
			}
			if got := terminations(calls()); !slices.Equal(got, want) {
				t.Errorf("the machine is ended by %q, want %q", got, want)
			}
		})
	}
}

// terminations returns the calls that end a machine.
func terminations(calls string) []string {
	return slices.DeleteFunc(strings.Split(calls, "\n"),
		func(line string) bool { return !strings.Contains(line, " terminate-") })
}

// One of both calls is enough: the group may hold the machine in another state, and only the group may end one whose
// termination is protected.
func TestAWSMachineEndsByEitherCall(t *testing.T) {
	t.Setenv("EXEUNT_CLUSTER", "prod")
	running := answer{words: "describe-instances", stdout: described("running", "1", "1", "")}
	fine, denied := answer{}, answer{stderr: "AccessDenied", code: 254}
	throttled := answer{stderr: "(RequestLimitExceeded)", code: 254}
	for name, tc := range map[string]struct {
		byGroup, direct answer
		want            want
	}{
		"both":      {fine, fine, is(Stopping)},
		"group":     {fine, denied, is(Stopping)},
		"direct":    {denied, fine, is(Stopping)},
		"neither":   {denied, denied, fails("AccessDenied")},
		"throttled": {throttled, throttled, want{message: "RequestLimitExceeded", throttled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.byGroup.words, tc.direct.words = byGroup, direct
			calls := stub(t, "aws", running, tc.byGroup, tc.direct)
			call(t, "aws-autoscaling.sh", "stop", machine, tc.want)
			if got := terminations(calls()); !slices.Equal(got, []string{byGroup, direct}) {
				t.Errorf("the machine is ended by %q", got)
			}
		})
	}
}

func TestAWSFailuresAreErrors(t *testing.T) {
	t.Setenv("EXEUNT_CLUSTER", "prod")
	running := described("running", "1", "1", "")
	for stderr, want := range map[string]want{
		"An error occurred (RequestLimitExceeded)":      {message: "RequestLimitExceeded", throttled: true},
		"An error occurred (Throttling): Rate exceeded": {message: "Rate exceeded", throttled: true},
		"An error occurred (UnauthorizedOperation)":     fails("UnauthorizedOperation"),
	} {
		stub(t, "aws", answer{words: "describe-instances", stdout: running, stderr: stderr, code: 254})
		call(t, "aws-autoscaling.sh", "get", machine, want)
	}
	stub(t, "aws", answer{words: "describe-instances", stdout: running, stderr: "a warning"})
	call(t, "aws-autoscaling.sh", "get", machine, is(Running))
	t.Setenv("EXEUNT_CLUSTER", "prod'] || [")
	call(t, "aws-autoscaling.sh", "get", machine, fails("is no name of a cluster"))
}

// A kubelet can register any providerID.
func TestProviderIDsOfOtherCloudsAreForeign(t *testing.T) {
	t.Setenv("EXEUNT_CLUSTER", "prod")
	calls := stub(t, "aws")
	for _, id := range []string{"", "i-0abc", "gce://project/zone/i-0abc", "aws:///zone/", "aws:///zone/i-",
		"aws:///zone/i-*", "aws:///zone/i-0abc,i-0abd", "aws:///zone/--help", "aws:///zone/i-0abc\nx",
		"aws:///zone/fargate-ip-10-0-0-1"} {
		call(t, "aws-autoscaling.sh", "stop", Instance{ProviderID: id, Node: "n"}, is(Foreign))
	}
	if calls() != "" {
		t.Errorf("AWS was called: %s", calls())
	}
}
