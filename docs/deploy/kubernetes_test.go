package deploy

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// decode reads the objects of a manifest as a server of Kubernetes does with fieldValidation=Strict: kinds that do not exist,
// fields that the kind does not have, fields that are set twice and values of another type are errors.
func decode(manifest []byte) (objects []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme,
	} {
		must.Succeed(add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
		if path := missing(reflect.ValueOf(object).Elem()); path != "" {
			return nil, fmt.Errorf("%v: %s is required", kind, path)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// missing returns the first field that is empty and may not be left out: its tag has no omitempty. The status is the server's.
func missing(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return missing(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if path := missing(v.Index(i)); path != "" {
				return fmt.Sprintf("[%d]%s", i, path)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			tag, tagged := v.Type().Field(i).Tag.Lookup("json")
			name, options, _ := strings.Cut(tag, ",")
			if !tagged || name == "status" {
				continue
			}
			path := missing(v.Field(i))
			if name == "" { // the fields of an embedded struct are those of v
				if path != "" {
					return path
				}
				continue
			}
			if path != "" || v.Field(i).IsZero() && !strings.Contains(options, "omit") {
				return "." + name + path
			}
		}
	}
	return ""
}

func objects[T runtime.Object](t *testing.T, file string) (of []T) {
	t.Helper()
	for _, object := range must.Have(decode(must.Have(os.ReadFile(file)))) {
		if o, is := object.(T); is {
			of = append(of, o)
		}
	}
	return of
}

func one[T runtime.Object](t *testing.T, file string) T {
	t.Helper()
	of := objects[T](t, file)
	if len(of) != 1 {
		t.Fatalf("%s has %d of %T", file, len(of), of)
	}
	return of[0]
}

var manifests = []string{"sidecar.yaml", "gateway-less.yaml"}

func TestManifestsAreValid(t *testing.T) {
	for _, file := range manifests {
		if _, err := decode(must.Have(os.ReadFile(file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What a server of Kubernetes refuses is refused here.
func TestWrongManifestsAreRefused(t *testing.T) {
	manifest := string(must.Have(os.ReadFile("sidecar.yaml")))
	for _, wrong := range [][3]string{
		{"restartPolicy: Always", "restartpolicy: Always", `unknown field "spec.template.spec.initContainers[0].restartpolicy"`},
		{"replicas: 2", "replicas: two", "replicas"},
		{"replicas: 2", "replicas: 2\n  replicas: 3", "already set"},
		{"apiVersion: apps/v1", "apiVersion: apps/v2", `no kind "Deployment" is registered for version "apps/v2"`},
		{"memory: 128Mi", "memory: 128MiB", "quantities must match"},
		{"  selector:\n    matchLabels: {app: orders}\n", "", ".spec.selector is required"},
		{"- name: proxy\n          image: registry", "- image: registry", ".spec.template.spec.initContainers[0].name is required"},
		{"mountPath: /etc/lull, ", "", "[0].mountPath is required"},
		{"path: /health, port: 3000", "path: /health", ".readinessProbe.httpGet.port is required"},
	} {
		changed := strings.Replace(manifest, wrong[0], wrong[1], 1)
		_, err := decode([]byte(changed))
		if changed == manifest || err == nil || !strings.Contains(err.Error(), wrong[2]) {
			t.Errorf("%q instead of %q: want %q, got %v", wrong[1], wrong[0], wrong[2], err)
		}
	}
}

// Each part finds the others by names and labels, which the types do not compare.
func TestPartsFindEachOther(t *testing.T) {
	for _, file := range manifests {
		deployment := one[*appsv1.Deployment](t, file)
		pod := deployment.Spec.Template
		selects := func(what string, s *metav1.LabelSelector) {
			if !must.Have(metav1.LabelSelectorAsSelector(s)).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: the selector of %s does not match the pods", file, what)
			}
		}
		selects("the Deployment", deployment.Spec.Selector)
		service := one[*corev1.Service](t, file)
		selects("the Service", &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
		network := one[*networkingv1.NetworkPolicy](t, file)
		selects("the NetworkPolicy", &network.Spec.PodSelector)
		for _, budget := range objects[*policyv1.PodDisruptionBudget](t, file) {
			selects("the PodDisruptionBudget", budget.Spec.Selector)
		}

		var ports, serves, allows []int32
		for _, p := range proxyOf(t, file).Ports {
			ports = append(ports, p.ContainerPort)
		}
		for _, p := range service.Spec.Ports {
			serves = append(serves, p.TargetPort.IntVal)
		}
		for _, p := range network.Spec.Ingress[0].Ports {
			allows = append(allows, p.Port.IntVal)
		}
		check.Slices(t, serves, ports, "%s: ports of the Service, and of the proxy", file)
		check.Slices(t, allows, ports, "%s: ports of the NetworkPolicy, and of the proxy", file)

		mount := proxyOf(t, file).VolumeMounts[0]
		volume := pod.Spec.Volumes[0]
		check.Equal(t, mount.Name, volume.Name, "%s: volume", file)
		if source := volume.ConfigMap; source != nil {
			check.Equal(t, source.Name, one[*corev1.ConfigMap](t, file).Name, "%s: name of the ConfigMap", file)
		} else {
			check.Equal(t, volume.Secret.SecretName, one[*corev1.Secret](t, file).Name, "%s: name of the Secret", file)
		}
		check.Equal(t, proxyOf(t, file).Args[0], mount.MountPath+"/proxy.yaml", "%s: path of the proxy's file", file)
	}
}

func proxyOf(t *testing.T, file string) corev1.Container {
	t.Helper()
	spec := one[*appsv1.Deployment](t, file).Spec.Template.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == "proxy" {
			return c
		}
	}
	t.Fatalf("%s has no container with the name proxy", file)
	panic("unreachable")
}

// proxyFile returns the file that a manifest gives the proxy.
func proxyFile(t *testing.T, manifest string) string {
	t.Helper()
	for _, m := range objects[*corev1.ConfigMap](t, manifest) {
		return m.Data["proxy.yaml"]
	}
	return one[*corev1.Secret](t, manifest).StringData["proxy.yaml"]
}

// With native sidecars an init container that is restarted always runs beside the application, and ends after it.
func TestTheProxyIsANativeSidecar(t *testing.T) {
	spec := one[*appsv1.Deployment](t, "sidecar.yaml").Spec.Template.Spec
	proxy := spec.InitContainers[0]
	if proxy.RestartPolicy == nil || *proxy.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("restartPolicy is not Always")
	}
	if proxy.StartupProbe == nil {
		t.Error("without a startup probe the application does not wait for the proxy")
	}
}

// Pods may run under the strictest of the pod security standards, "restricted", and write nothing.
func TestPodsAreRestricted(t *testing.T) {
	for _, file := range manifests {
		spec := one[*appsv1.Deployment](t, file).Spec.Template.Spec
		if s := spec.SecurityContext; !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: runs as root, or without a profile of seccomp", file)
		}
		check.Equal(t, *spec.AutomountServiceAccountToken, false, "%s: automountServiceAccountToken", file)
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || *s.RunAsUser == 0 ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("%s: container %s has rights that it does not need", file, c.Name)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has no requests, or no limit of memory", file, c.Name)
			}
		}
	}
}

// The proxy ends by itself before the pod is killed: whatever is stopped before it has had its time, and then drain begins.
func TestPodsHaveTimeToDrain(t *testing.T) {
	for _, file := range manifests {
		var settings struct{ Drain string }
		must.Succeed(yaml.Unmarshal([]byte(proxyFile(t, file)), &settings))
		drain := must.Have(time.ParseDuration(settings.Drain))
		spec := one[*appsv1.Deployment](t, file).Spec.Template.Spec
		for _, c := range spec.Containers {
			drain += time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
		if grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; grace < drain+10*time.Second {
			t.Errorf("%s: the pod is killed %v after its end has begun, and stopping it takes %v", file, grace, drain)
		}
	}
}

// The admin listener is on loopback, and a kubelet that sends HTTP to 127.0.0.1 asks its own node. So probes are programs of the
// container. They do not read the file: a wrong one changes nothing, and must not end the proxy.
func TestProbesReachTheAdminListener(t *testing.T) {
	for _, file := range manifests {
		var settings struct{ Admin struct{ Listen string } }
		must.Succeed(yaml.Unmarshal([]byte(proxyFile(t, file)), &settings))
		ready := "http://" + settings.Admin.Listen + "/ready"
		proxy := proxyOf(t, file)
		for probe, url := range map[*corev1.Probe]string{
			proxy.StartupProbe: ready, proxy.ReadinessProbe: ready, proxy.LivenessProbe: "http://" + settings.Admin.Listen + "/health",
		} {
			check.Slices(t, probe.Exec.Command, []string{"/usr/local/bin/lull-proxy", "--probe", url}, "%s: command of a probe", file)
		}
	}
}
