//! The table of codes: one line a code, one page a code under `codes/`.

use std::fmt;

/// A stable diagnostic code, such as `J0201`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(&'static str);

impl Code {
    /// The code as text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The page `jobc explain` prints, in Markdown.
    pub fn page(self) -> &'static str {
        TABLE.iter().find(|(code, ..)| *code == self).map_or("", |(_, _, page)| page)
    }

    /// One line that says what the code stands for.
    pub fn title(self) -> &'static str {
        TABLE.iter().find(|(code, ..)| *code == self).map_or("", |(_, title, _)| title)
    }

    /// The code with that text, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        TABLE.iter().map(|(code, ..)| *code).find(|code| code.0.eq_ignore_ascii_case(text))
    }

    /// All codes with their titles.
    pub fn all() -> impl Iterator<Item = (Self, &'static str)> {
        TABLE.iter().map(|(code, title, _)| (*code, *title))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*
        /// Code, title, page.
        static TABLE: &[(Code, &str, &str)] =
            &[$((Code($code), $title, include_str!(concat!("codes/", $code, ".md"))),)*];
    };
}

codes! {
    // ---- J00xx: parse ---------------------------------------------------------------------------
    SYNTAX "J0001" "the text is not YAML or JSON";
    DUPLICATE_KEY "J0002" "a key stands twice in one map";
    TAB "J0003" "a tab stands where only spaces may";
    LEADING_ZERO "J0004" "a number begins with a zero";
    MERGE "J0005" "`<<` is not part of version 1";
    TAG "J0006" "a tag means nothing here";
    SEVERAL_DOCUMENTS "J0007" "the file holds more than one document";
    KEY "J0008" "a key is not a string";
    ALIAS "J0009" "an alias has no anchor";
    LIMIT "J0010" "the file is too large, nests too deep or copies too much";
    EMPTY "J0011" "the file holds no value";
    EXPRESSION_IN_FLOW "J0012" "an expression inside `{}` or `[]` is not quoted";
    MISREAD "J0013" "other tools read a plain value differently";
    NUMBER "J0014" "a number cannot be kept";
    UNCLOSED "J0015" "a quote or bracket is not closed";
    MISSING_BLANK "J0016" "a blank is missing after a colon or dash";
    SECOND_COLON "J0017" "a plain value holds `: `";
    NOT_JSON "J0018" "text from a shell or an abridged text is not JSON";
    JSON_SPELLING "J0019" "JSON spells this differently";

    // ---- J01xx: validate ------------------------------------------------------------------------
    UNKNOWN_KEY "J0101" "a key is not known where it stands";
    MISSING_KEY "J0102" "a key is missing";
    WRONG_KIND "J0103" "a value is of a kind its key does not take";
    NO_VALUE "J0104" "a key has no value";
    BAD_AMOUNT "J0105" "an amount or a duration cannot be read";
    NOT_ONE_OF "J0106" "a value is not one of the words its key takes";
    MALFORMED "J0107" "a text does not have the form its key takes";
    BAD_NAME "J0108" "a name has letters its place does not allow";
    OUT_OF_RANGE "J0109" "a number is too small or too great";
    EMPTY_VALUE "J0110" "something is empty that must not be";
    BOOL_IN_ENV "J0111" "an environment variable is a bool";
    EXCLUSIVE "J0112" "keys exclude each other";
    ONE_NEEDED "J0113" "one of several keys is needed";
    IMAGE_KEYS "J0114" "keys of an image block do not go together";
    ROLES_MISSING "J0115" "a job has no roles";
    NO_SCRIPT "J0116" "`shell` or `setup` has no script to work on";
    MATRIX_MIXED "J0117" "axes stand beside the rules of a matrix";
    DUPLICATE_ITEM "J0118" "a list names something twice";
    SHARED_NAME "J0119" "data and outputs share a name";
    UNKNOWN_DEFAULT "J0120" "`default` names a target that is not there";
    UNUSED_SETTINGS "J0121" "a target has settings for a backend it does not write";
    FOREIGN_FILE "J0122" "the file is another tool's";

    // ---- J02xx: templates, parameters, resolve --------------------------------------------------
    PARAM_UNKNOWN "J0201" "a parameter that the job does not have is given";
    PARAM_MISSING "J0202" "a parameter has no value";
    PARAM_TYPE "J0203" "a parameter's value is not of its type";
    PARAM_RANGE "J0204" "a parameter's value is not allowed";
    PARAM_RULES "J0205" "a parameter's rules do not fit together";
    MATRIX_EMPTY "J0206" "a matrix has no combinations";
    MATRIX_SIZE "J0207" "a matrix has too many combinations";
    MATRIX_COMBINATION "J0208" "`include` or `exclude` does not fit the axes of a matrix";
    MATRIX_OUTPUT "J0209" "two jobs of a matrix write to one place";
    EXPRESSION_SYNTAX "J0210" "an expression cannot be read";
    EXPRESSION_NAME "J0211" "a name in an expression is not defined";
    EXPRESSION_PLACE "J0212" "an expression stands where its value cannot be known";
    EXPRESSION_VALUE "J0213" "an expression has no value that fits";
    SECRET_PLACE "J0214" "a secret stands where its value would be seen";
    ENV_RESERVED "J0215" "a variable is set that jobc or the place sets";
    COMMAND "J0216" "the parts of a command do not go together";
    READY "J0217" "the page of `ready` is not a path";
    FILE "J0218" "a file of a role is not text at a place of its own";
    MISSING_FILE "J0219" "a file that the job names cannot be used";
    IMAGE_NONE "J0220" "a role has no image";
    IMAGE_UNKNOWN "J0221" "a named image is not there";
    IMAGE_FORM "J0222" "an image cannot be made that way";
    IMAGE_REFERENCE "J0223" "an image reference cannot be one";
    VOLUME_SOURCE "J0230" "the source of data or of an output cannot be read";
    VOLUME_MOUNT "J0231" "something is mounted where it cannot be";
    VOLUME_UNKNOWN "J0233" "a role lists data or an output that is not there";
    VOLUME_OPTION "J0234" "an option does not fit the source";
    SECRET_UNKNOWN "J0235" "a secret is not declared";
    HUGEPAGES "J0240" "huge pages are not whole";
    PORT_CLASH "J0241" "two ports of a role have one number";
    PORT_RANGE "J0242" "a row of ports ends above 65535";
    GPU_RULES "J0243" "rules about GPUs do not fit together";
    PORT_UNKNOWN "J0244" "a port label is not there";
    NEED_UNKNOWN "J0250" "a needed role is not there";
    NEED_CYCLE "J0251" "roles wait for each other";
    NEED_READY "J0252" "a role that others wait for does not say when it is ready";
    NEED_MIN "J0253" "a role waits for more instances than there are";
    DEADLOCK "J0254" "instances that must run together cannot";
    COMPLETION "J0255" "a threshold can never be reached";
    GANG_MIN "J0256" "a gang is larger than the job";
    MEMBER_UNKNOWN "J0270" "a role of `distributed` is not there";
    MEMBER_PART "J0271" "a part does not fit the framework";
    LAUNCH "J0272" "a command of `distributed` would never run, or is missing";
    PROCESSES "J0273" "the framework starts one process on each instance";
    RENDEZVOUS_PORT "J0274" "the rendezvous port is given twice";
    TEMPLATE_ABSENT "J0280" "there is no such template";
    TEMPLATE_FORM "J0281" "a file is not a template";
    TEMPLATE_PARAM "J0282" "a template has no such parameter";
    TEMPLATE_VALUE "J0283" "a template does not take that value";
    TEMPLATE_MISSING "J0284" "a template needs a value that is not given";
    TEMPLATE_CYCLE "J0285" "templates use each other in a circle";
    TEMPLATE_EXPRESSION "J0286" "an expression of a template cannot be filled";
    TEMPLATE_KIND "J0287" "a template of another kind is used";
    WITHOUT_USES "J0288" "`with` stands without `uses`";
    SCALE "J0289" "`--scale` does not fit the job";
    READY_PATTERN "J0290" "the pattern of `ready` is not a regular expression";
    IMAGE_NOT_LOCKED "J0291" "an image is not in jobc.lock";

    // ---- J03xx: check (lints) -------------------------------------------------------------------
    ALLOW "J0300" "`x-jobc-allow` lists what is no code";
    TORCHRUN_ALONE "J0301" "torchrun is not told of its other instances";
    DDP_PROCESSES "J0302" "one process serves an instance of several GPUs";
    RANK_BY_HAND "J0303" "a variable of the rendezvous is set by hand";
    LAUNCHER_DISAGREES "J0304" "torchrun's numbers disagree with the job";
    THRESHOLD_IN_GANG "J0305" "a threshold splits instances that work as one";
    RETRY_ONE_RANK "J0306" "one rank is tried again without the others";
    SHM_OVER_MEMORY "J0310" "there is more shared memory than memory";
    NO_SHM "J0311" "a GPU role states no shared memory";
    LITTLE_MEMORY "J0312" "there is too little memory to start";
    FEW_PIDS "J0313" "there are too few processes to start";
    MANY_CPUS "J0314" "there are more CPUs than machines have";
    GPU_WITHOUT_MEMORY "J0315" "a GPU role states no memory";
    TIMEOUT_UNDER_GRACE "J0316" "a timeout is shorter than the grace period";
    SHARED_WRITE "J0317" "several instances write the same data";
    IMAGE_CUDA "J0320" "the image's CUDA is older than asked for";
    DRIVER_FOR_CUDA "J0321" "a driver is too old for a CUDA version";
    TARGET_DRIVER "J0322" "the target's driver is older than asked for";
    CUDA_FOR_CARD "J0323" "a CUDA version does not build for the card";
    UNKNOWN_MODEL "J0324" "a GPU model is not known";
    CARD_TOO_SMALL "J0325" "more is asked of a card than it has";
    MIG_PROFILE "J0326" "a MIG profile does not fit the card";
    TARGET_MODELS "J0327" "none of the target's cards will do";
    IDLE_GPU_IMAGE "J0328" "an image for GPUs runs without one";
    CPU_IMAGE "J0329" "an image cannot use the GPUs asked for";
    HOST_PORT_SHARED "J0330" "instances share a port of the host";
    HOST_PORT_TWICE "J0331" "two roles share a port of the host";
    SECRET_WRITTEN_OUT "J0332" "a value that looks like a secret is written out";
    MUTABLE_TAG "J0333" "an image's content changes under its name";
    UNPINNED_PACKAGE "J0334" "a package has no fixed version";
    UNUSED_PARAM "J0335" "a parameter is used nowhere";
    UNUSED_SECRET "J0336" "a secret is used nowhere";
    UNUSED_DATA "J0337" "data that no role sees";
    UNUSED_IMAGE "J0338" "an image that no role runs in";
    UNUSED_REGISTRY "J0339" "a registry that no image comes from";
    UNUSED_ARG "J0340" "a build argument is used nowhere";
    NEEDS_ENDLESS "J0342" "a role waits for the end of one that never ends";
    JOB_NEVER_ENDS "J0343" "nothing ends the job when its work is done";
    ENDS_IN_BACKGROUND "J0344" "a script ends while its program runs";
    SUDO "J0345" "sudo where no privileges can be had";
    IMAGE_REQUIRES "J0346" "what an image requires of the driver is not there";

    // ---- J04xx: lower, what a backend cannot express --------------------------------------------
    REFUSED "J0401" "a backend cannot express what the job asks for";
    LOSSY "J0402" "a backend cannot express what the job asks for exactly";
    DROPPED "J0403" "a backend leaves out what the job asks for";
    SKIPPED "J0404" "a built-in target was skipped";
    NOT_BUILT_IN "J0405" "this jobc was built without the backend";
    KUBERNETES_NAME "J0410" "a name derived for Kubernetes is too long or begins with a digit";
    KUBERNETES_KIND "J0411" "the target's kind of object cannot hold the job";
    KUBERNETES_RELEASE "J0412" "the target's release is too old for what the job needs";
    KUBERNETES_RANK "J0413" "a rank that no shell can work out";
    KUBERNETES_SETTING "J0414" "a Kubernetes setting of the target is wrong";
    KUBERNETES_SIZE "J0415" "something is larger than Kubernetes takes";
    KUBERNETES_REGISTRY "J0416" "the cluster cannot pull an image that is built here";
    KUBERNETES_LEFT_OUT "J0417" "a variable or file of jobc's is left out because it does not fit";
    KUBERNETES_LABEL "J0418" "a label that Kubernetes does not take";
    KUBERNETES_VOLUME_SECRET "J0419" "a volume's secret that Kubernetes does not use";
    GPU_ROUNDED "J0420" "a provider of GPUs counts in coarser units";
    GPU_PROVIDERS "J0421" "two providers of GPUs cannot serve the same nodes";
    GPU_PROVIDER_NEEDS "J0422" "a provider of GPUs needs something that clusters do not have by themselves";
    TOO_MANY_TASKS "J0430" "more tasks than files are written for";
    PORT_ABOVE_RANGE "J0431" "a port of an instance would be above 65535";
    UNKNOWN_LINUX_CAPABILITY "J0432" "no Linux capability has that name";
    GPU_NOT_INJECTED "J0433" "the chosen GPU injection does not serve these GPUs";
    KERNEL_LIST "J0434" "a list of CPUs or memory nodes the kernel would refuse";
    INSIDE_READ_ONLY "J0435" "something is mounted inside a read-only volume";
    BUILD_NO_APT "J0450" "`apt` is asked for on a base image without apt";
    BUILD_FILE_MISSING "J0451" "a file that a requirements file names is not there";
    BUILD_PYTHON_VERSION "J0452" "the base image has another Python than the job asks for";
    BUILD_NO_PYTHON "J0453" "Python is asked for on a base image that cannot get one";
    BUILD_NO_CONDA "J0454" "`conda` is asked for on a base image without conda";
    BUILD_LINE_BREAK "J0455" "a line of a Dockerfile cannot hold a line break";
    BUILD_SECRET_STORE "J0456" "a build cannot read a secret of a store";
    BUILD_OUTSIDE_CONTEXT "J0457" "a requirements file names a file outside the build context";
    PAI_SAME_NAME "J0470" "two names become one on OpenPAI";
    PAI_ROUNDED "J0471" "OpenPAI counts in coarser units";
    PAI_PORT "J0472" "OpenPAI chooses a port's number itself";
    PAI_GANG "J0473" "OpenPAI retries tasks only where they need not start together";
    PAI_STORAGE "J0475" "a storage of OpenPAI does not fit what it is to provide";

    // ---- J05xx: targets and other input formats -------------------------------------------------
    NO_SUCH_TARGET "J0501" "there is no such target";
    LOCK_FORM "J0502" "jobc.lock cannot be used";
    OPENPAI_FIELD "J0521" "a field of an OpenPAI job is not known";
    OPENPAI_VALUE "J0522" "a value of an OpenPAI job cannot be used";
    OPENPAI_MISSING "J0523" "a field of an OpenPAI job is missing";
    OPENPAI_RENAMED "J0524" "a name of an OpenPAI job is changed";
    OPENPAI_PLACE "J0525" "a part of an OpenPAI job is for OpenPAI alone";
    OPENPAI_TEMPLATE "J0526" "a template of an OpenPAI job names nothing";
    OPENPAI_REFERENCE "J0527" "an OpenPAI job names something that is not there";
    OPENPAI_SAME_NAME "J0528" "two things of an OpenPAI job have one name";
    OPENPAI_IGNORED "J0529" "OpenPAI ignores what the job asks for";
    OPENPAI_SECRET "J0530" "the value of a secret stands in an OpenPAI job";
    OPENPAI_THRESHOLD "J0531" "a threshold of an OpenPAI job is never reached";

    // ---- J06xx: a user's own Dockerfile ---------------------------------------------------------
    DOCKERFILE_SYNTAX "J0601" "a Dockerfile cannot be read";
    DOCKERFILE_STAGE "J0602" "a Dockerfile has no such stage";
    DOCKERFILE_FROM "J0603" "a copy is made from something that is no stage";
    DOCKERFILE_ARGUMENT "J0604" "a Dockerfile declares no such argument";
    DOCKERFILE_VARIABLE "J0605" "the base image of a Dockerfile depends on a variable without a value";
    DOCKERFILE_TAG "J0606" "the base image of a Dockerfile has no fixed version";
    DOCKERFILE_SOURCE "J0607" "a file that a Dockerfile copies is not there";
    DOCKERFILE_OUTSIDE "J0608" "a Dockerfile copies from outside its context";
    DOCKERFILE_ADD "J0609" "a Dockerfile adds a file that may change";
    DOCKERFILE_SECRET "J0610" "a Dockerfile keeps a secret in the image";
    DOCKERFILE_EXEC "J0611" "a command in brackets is one string";
    DOCKERFILE_UNSUPPORTED "J0612" "a Dockerfile asks for what jobc's own builder does not do";
}
