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

    /// One line: the title of the code.
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
    DUPLICATE_KEY "J0002" "duplicate key in a map";
    TAB "J0003" "unexpected tab: use spaces";
    LEADING_ZERO "J0004" "a number begins with a zero";
    MERGE "J0005" "`<<` is not part of version 1";
    TAG "J0006" "unsupported tag";
    SEVERAL_DOCUMENTS "J0007" "the file contains more than one document";
    KEY "J0008" "a key is not a string";
    ALIAS "J0009" "an alias has no anchor";
    LIMIT "J0010" "the file is too large, nests too deep or copies too much";
    EMPTY "J0011" "the file contains no value";
    EXPRESSION_IN_FLOW "J0012" "an expression inside `{}` or `[]` is not quoted";
    MISREAD "J0013" "an unquoted value that other tools read differently";
    NUMBER "J0014" "a number that cannot be stored";
    UNCLOSED "J0015" "a quote or bracket is not closed";
    MISSING_BLANK "J0016" "missing space after a colon or dash";
    SECOND_COLON "J0017" "an unquoted value contains `: `";
    NOT_JSON "J0018" "text from a shell, or shortened text, is not JSON";
    JSON_SPELLING "J0019" "JSON spells this differently";

    // ---- J01xx: validate ------------------------------------------------------------------------
    UNKNOWN_KEY "J0101" "unknown key";
    MISSING_KEY "J0102" "missing key";
    WRONG_KIND "J0103" "a value has the wrong type";
    NO_VALUE "J0104" "a key has no value";
    BAD_AMOUNT "J0105" "invalid amount or duration";
    NOT_ONE_OF "J0106" "a value is not one of the allowed values";
    MALFORMED "J0107" "a text has the wrong format";
    BAD_NAME "J0108" "a name contains characters that are not allowed";
    OUT_OF_RANGE "J0109" "a number is out of range";
    EMPTY_VALUE "J0110" "an empty value where one is required";
    BOOL_IN_ENV "J0111" "the value of an environment variable is a bool";
    EXCLUSIVE "J0112" "keys that exclude each other";
    ONE_NEEDED "J0113" "one of several keys is needed";
    IMAGE_KEYS "J0114" "keys of an image block that cannot be combined";
    ROLES_MISSING "J0115" "a job has no roles";
    NO_SCRIPT "J0116" "`shell` or `setup` without a script";
    MATRIX_MIXED "J0117" "axes next to the rules of a matrix";
    DUPLICATE_ITEM "J0118" "duplicate entry in a list";
    SHARED_NAME "J0119" "data and outputs share a name";
    UNKNOWN_DEFAULT "J0120" "unknown target in `default`";
    UNUSED_SETTINGS "J0121" "a target has settings for a backend that it does not use";
    FOREIGN_FILE "J0122" "the file is not a job file";
    TYPOGRAPHY "J0150" "quotes, dashes or spaces of a word processor";
    OTHER_EXPRESSION "J0151" "an expression as another tool writes it";
    FOLDED_COMMANDS "J0152" "the lines of a folded block are one command";

    // ---- J02xx: templates, parameters, resolve --------------------------------------------------
    PARAM_UNKNOWN "J0201" "unknown parameter";
    PARAM_MISSING "J0202" "a parameter has no value";
    PARAM_TYPE "J0203" "the value of a parameter has the wrong type";
    PARAM_RANGE "J0204" "the value of a parameter is not allowed";
    PARAM_RULES "J0205" "contradictory rules of a parameter";
    MATRIX_EMPTY "J0206" "a matrix has no combinations";
    MATRIX_SIZE "J0207" "a matrix has too many combinations";
    MATRIX_COMBINATION "J0208" "`include` or `exclude` does not fit the axes of a matrix";
    MATRIX_OUTPUT "J0209" "two jobs of a matrix write to the same output";
    EXPRESSION_SYNTAX "J0210" "invalid expression";
    EXPRESSION_NAME "J0211" "undefined name in an expression";
    EXPRESSION_PLACE "J0212" "an expression whose value is not known here";
    EXPRESSION_VALUE "J0213" "an expression with an unsuitable value";
    SECRET_PLACE "J0214" "a secret whose value would be visible";
    ENV_RESERVED "J0215" "a variable that jobc or the target sets";
    COMMAND "J0216" "parts of a command that cannot be combined";
    READY "J0217" "the path of `ready` is not a path";
    FILE "J0218" "invalid small file of a role";
    MISSING_FILE "J0219" "a file of the job cannot be used";
    IMAGE_NONE "J0220" "a role has no image";
    IMAGE_UNKNOWN "J0221" "unknown named image";
    IMAGE_FORM "J0222" "an image cannot be built that way";
    IMAGE_REFERENCE "J0223" "invalid image reference";
    VOLUME_SOURCE "J0230" "invalid source of data or an output";
    VOLUME_MOUNT "J0231" "invalid mount point";
    VOLUME_UNKNOWN "J0233" "unknown data or output in a role";
    VOLUME_OPTION "J0234" "an option does not fit the source";
    SECRET_UNKNOWN "J0235" "undeclared secret";
    HUGEPAGES "J0240" "not a whole number of huge pages";
    PORT_CLASH "J0241" "two ports of a role have the same number";
    PORT_RANGE "J0242" "consecutive ports exceed 65535";
    GPU_RULES "J0243" "contradictory rules about GPUs";
    PORT_UNKNOWN "J0244" "unknown port label";
    NEED_UNKNOWN "J0250" "unknown role in `needs`";
    NEED_CYCLE "J0251" "dependency cycle between roles";
    NEED_READY "J0252" "a role that others wait for has no `ready`";
    NEED_MIN "J0253" "a role waits for more instances than there are";
    DEADLOCK "J0254" "instances that must run together cannot";
    COMPLETION "J0255" "a threshold that can never be reached";
    GANG_MIN "J0256" "a gang is larger than the job";
    PARAM_UNSET "J0260" "the environment variable of a parameter is not set";
    JOB_VOLUME "J0261" "a directory of the job that hands nothing on";
    GPU_ALL_SHARED "J0263" "several instances that each take all GPUs";
    MEMBER_UNKNOWN "J0270" "unknown role in `distributed`";
    MEMBER_PART "J0271" "unknown or missing part of a framework";
    LAUNCH "J0272" "a command of `distributed` would never run, or is missing";
    PROCESSES "J0273" "the framework starts one process on each instance";
    RENDEZVOUS_PORT "J0274" "the rendezvous port is given twice";
    ELASTIC "J0275" "rules of an elastic rendezvous that do not fit";
    RAY_COMMAND "J0276" "a Ray head without a command, or a worker with one";
    TEMPLATE_ABSENT "J0280" "unknown template";
    TEMPLATE_FORM "J0281" "a file is not a template";
    TEMPLATE_PARAM "J0282" "unknown parameter of a template";
    TEMPLATE_VALUE "J0283" "invalid value of a template parameter";
    TEMPLATE_MISSING "J0284" "missing value of a template parameter";
    TEMPLATE_CYCLE "J0285" "template cycle";
    TEMPLATE_EXPRESSION "J0286" "invalid expression in a template";
    TEMPLATE_KIND "J0287" "a template of the wrong kind";
    WITHOUT_USES "J0288" "`with` without `uses`";
    SCALE "J0289" "`--scale` does not fit the job";
    READY_PATTERN "J0290" "the pattern of `ready` is not a regular expression";
    IMAGE_NOT_LOCKED "J0291" "an image is not in jobc.lock";
    MATRIX_ROLE "J0292" "the matrix of a role does not fit the job";
    MATRIX_ADDRESS "J0293" "the address of a role with a matrix";
    METRIC "J0294" "invalid metric";
    SUBPATH "J0295" "invalid `subpath`";
    TEMPLATE_REFERENCE "J0296" "invalid name of a template in Git";
    TEMPLATE_NOT_LOCKED "J0297" "a template from Git is not locked";
    IO_LIMIT "J0298" "a limit of disk traffic that limits nothing or everything";
    TEMPLATE_IMAGE "J0299" "the image of a template replaces that of the job";

    // ---- J03xx: check (lints) -------------------------------------------------------------------
    ALLOW "J0300" "`x-jobc-allow` contains an unknown code";
    LAUNCHER_ALONE "J0301" "a launcher does not know its other instances";
    DDP_PROCESSES "J0302" "one process for several GPUs";
    RANK_BY_HAND "J0303" "a variable of the rendezvous is set by hand";
    LAUNCHER_DISAGREES "J0304" "the numbers of a launcher differ from those of the job";
    THRESHOLD_IN_GANG "J0305" "a threshold splits a group of ranks";
    RETRY_ONE_RANK "J0306" "one rank is retried without the others";
    LOCAL_RENDEZVOUS "J0307" "the rendezvous is at each instance's own address";
    SAME_RANK "J0308" "all instances have the same rank";
    LAUNCHER_MISFIT "J0309" "the command does not fit the framework";
    SHM_OVER_MEMORY "J0310" "there is more shared memory than memory";
    NO_SHM "J0311" "a GPU role sets no shared memory";
    LITTLE_MEMORY "J0312" "there is too little memory to start";
    FEW_PIDS "J0313" "there are too few processes to start";
    MANY_CPUS "J0314" "there are more CPUs than hosts have";
    GPU_WITHOUT_MEMORY "J0315" "a GPU role sets no memory";
    TIMEOUT_UNDER_GRACE "J0316" "a timeout is shorter than the grace period";
    SHARED_WRITE "J0317" "several instances write the same data";
    READ_ONLY_WRITE "J0318" "a command writes to read-only data";
    PIPE_FAILURE "J0319" "a pipe hides a failure";
    IMAGE_CUDA "J0320" "CUDA of the image is older than requested";
    DRIVER_FOR_CUDA "J0321" "a driver is too old for a CUDA version";
    TARGET_DRIVER "J0322" "the target's driver is older than requested";
    CUDA_FOR_CARD "J0323" "a CUDA version does not build for the card";
    UNKNOWN_MODEL "J0324" "unknown GPU model";
    CARD_TOO_SMALL "J0325" "a request exceeds the card";
    MIG_PROFILE "J0326" "a MIG profile does not fit the card";
    TARGET_MODELS "J0327" "no card of the target fits";
    IDLE_GPU_IMAGE "J0328" "a GPU image runs without GPUs";
    CPU_IMAGE "J0329" "an image cannot use the requested GPUs";
    HOST_PORT_SHARED "J0330" "instances share a port of the host";
    HOST_PORT_TWICE "J0331" "two roles share a port of the host";
    SECRET_WRITTEN_OUT "J0332" "a value that looks like a secret in plain text";
    MUTABLE_TAG "J0333" "an image's content changes under its name";
    UNPINNED_PACKAGE "J0334" "a package has no fixed version";
    UNUSED_PARAM "J0335" "unused parameter";
    UNUSED_SECRET "J0336" "unused secret";
    UNUSED_DATA "J0337" "unused data or output";
    UNUSED_IMAGE "J0338" "unused image";
    UNUSED_REGISTRY "J0339" "unused registry";
    UNUSED_ARG "J0340" "unused build argument";
    NEEDS_ENDLESS "J0342" "a role waits for the end of a role that never ends";
    JOB_NEVER_ENDS "J0343" "nothing ends the job when its work is done";
    ENDS_IN_BACKGROUND "J0344" "a script ends while its program runs";
    SUDO "J0345" "sudo without the privileges for it";
    IMAGE_REQUIRES "J0346" "driver requirements of an image are not met";
    NO_CUDA_COMPILER "J0347" "the image has no CUDA compiler";
    ENV_LITERAL "J0348" "a variable in `env` is not expanded";
    UNSET_VARIABLE "J0349" "a variable may be unset";
    NEEDS_LAST "J0350" "a role waits for what ends the job";
    LIST_OF_COMMANDS "J0351" "a word of a command holds several words";
    SCRIPT_NOT_COPIED "J0352" "a script is not in the container";
    FOREIGN_VARIABLE "J0353" "a variable of another system is not set";
    TORCHRUN_GRACE "J0354" "torchrun ends its processes before the grace period";
    SAME_FILE "J0355" "several tasks write the same file";
    SSH_USER "J0356" "a user cannot serve ssh between instances";
    TARGET_VARIABLE "J0357" "a variable of the job replaces one of the target";
    SCRATCH_OVER_DISK "J0358" "directories of an instance are larger than its disk";
    ACCELERATE_CONFIG "J0359" "a configuration of accelerate is for other machines";
    UNKNOWN_SIGNAL "J0360" "unknown signal";
    HOST_NAME "J0363" "a name or address of `extra_hosts` or `dns` is invalid";
    SHM_COVERED "J0364" "the size of /dev/shm has no effect";
    ENTRYPOINT_MISFIT "J0366" "a command does not fit the ENTRYPOINT of its image";
    RETRY_MEMORY "J0367" "the memory of retries cannot grow";
    NCCL_SIGNAL "J0368" "a stop signal may not reach the program";
    CHECKPOINT_OUTPUT "J0369" "the output with the checkpoints is wrong";
    STALL_RULES "J0370" "`stall` cannot be followed";
    PREFLIGHT "J0371" "a check before the command has nothing to check";
    PREFLIGHT_PROGRAM "J0372" "a check before the command needs a program that the image does not have";
    OVER_BUDGET "J0375" "a job can use more than its budget";
    BUDGET "J0376" "what a budget limits cannot be counted";
    NO_PROGRAM "J0380" "a program is not in the image";
    VISIBLE_DEVICES "J0381" "GPUs are selected that an instance does not have";
    SERVED_PORT "J0382" "a server listens on another port than its role declares";
    RESULT_LOST "J0383" "results are gone when the job ends";
    CONDA_ACTIVATE "J0384" "a shell cannot activate an environment of conda";
    DATA_PATH "J0385" "a command reads data where none is mounted";
    GPU_NOT_REQUESTED "J0386" "a command needs a GPU that its role does not request";
    PEER_AT_LOCALHOST "J0387" "another role is looked for at the own address";

    // ---- J04xx: lower, what a backend cannot express --------------------------------------------
    REFUSED "J0401" "a backend cannot express a setting of the job";
    LOSSY "J0402" "a backend cannot express a setting of the job exactly";
    DROPPED "J0403" "a backend does not express a setting of the job exactly";
    SKIPPED "J0404" "a backend of the default target was skipped";
    NOT_BUILT_IN "J0405" "this jobc was built without the backend";
    KUBERNETES_NAME "J0410" "a name derived for Kubernetes is too long or begins with a digit";
    KUBERNETES_KIND "J0411" "the target's kind of object cannot hold the job";
    KUBERNETES_RELEASE "J0412" "the target's release is too old for what the job needs";
    KUBERNETES_RANK "J0413" "a rank that cannot be computed";
    KUBERNETES_SETTING "J0414" "invalid Kubernetes setting of the target";
    KUBERNETES_SIZE "J0415" "something exceeds a limit of Kubernetes";
    KUBERNETES_REGISTRY "J0416" "the cluster cannot pull an image that is built locally";
    KUBERNETES_LEFT_OUT "J0417" "a variable or file of jobc is left out because it is too large";
    KUBERNETES_LABEL "J0418" "invalid Kubernetes label";
    KUBERNETES_VOLUME_SECRET "J0419" "the secret of a volume is not used on Kubernetes";
    GPU_ROUNDED "J0420" "a provider of GPUs counts in coarser units";
    GPU_PROVIDERS "J0421" "two providers of GPUs cannot serve the same nodes";
    GPU_PROVIDER_NEEDS "J0422" "a provider of GPUs needs something that clusters lack by default";
    KUBERNETES_POD_SECURITY "J0423" "the namespace's Pod Security level forbids what the job requests";
    KUBERNETES_QUOTA "J0424" "a job requests more than the target's quota";
    TOO_MANY_TASKS "J0430" "too many tasks to write files for";
    PORT_ABOVE_RANGE "J0431" "the port of an instance exceeds 65535";
    UNKNOWN_LINUX_CAPABILITY "J0432" "unknown Linux capability";
    GPU_NOT_INJECTED "J0433" "the GPU injection does not support these GPUs";
    KERNEL_LIST "J0434" "invalid list of CPUs or memory nodes";
    INSIDE_READ_ONLY "J0435" "something is mounted inside a read-only volume";
    TOO_FEW_DEVICES "J0436" "the target names fewer GPUs than the job uses";
    IDLE_SETTING "J0437" "a setting of a target has no effect";
    TPU_TOPOLOGY "J0438" "the chips of a TPU topology differ from those that a job requests";
    CODE "J0441" "the code of a job does not go with it as it is";
    CODE_SIZE "J0442" "the code of a job is too large";
    SLURM_READY "J0443" "nothing waits for a role to be ready on Slurm";
    SLURM_WITHOUT_JOBC "J0444" "Slurm alone does not run what a job asks for";
    SLURM_GRACE "J0447" "`scancel` leaves less than the grace period";
    BUILD_NO_APT "J0450" "`apt` on a base image without apt";
    BUILD_FILE_MISSING "J0451" "a requirements file names a missing file";
    BUILD_PYTHON_VERSION "J0452" "the base image has another Python version";
    BUILD_NO_PYTHON "J0453" "Python on a base image that cannot install it";
    BUILD_NO_CONDA "J0454" "`conda` on a base image without conda";
    BUILD_LINE_BREAK "J0455" "a line of a Dockerfile cannot hold a line break";
    BUILD_SECRET_STORE "J0456" "a build cannot read a secret from a secret store";
    BUILD_OUTSIDE_CONTEXT "J0457" "a requirements file names a file outside the build context";
    BUILD_STEP_FAILED "J0458" "a step of an image block failed";
    SLURM_ROUNDED "J0460" "Slurm counts in coarser units";
    SLURM_SETTING "J0461" "a Slurm setting of the target that does not fit";
    SLURM_MOUNT "J0462" "a directory that the target cannot mount";
    SLURM_NO_IMAGE "J0463" "a job runs without its image on Slurm";
    SLURM_ARRAY "J0464" "the jobs of a matrix cannot be one array of Slurm";
    PAI_SAME_NAME "J0470" "two roles have the same name on OpenPAI";
    PAI_ROUNDED "J0471" "OpenPAI counts in coarser units";
    PAI_PORT "J0472" "OpenPAI chooses a port's number itself";
    PAI_GANG "J0473" "OpenPAI retries tasks only where they need not start together";
    PAI_STORAGE "J0475" "a storage of OpenPAI does not fit what it is to provide";
    NO_PLUGIN "J0480" "unknown backend";
    PLUGIN_FAILED "J0481" "a plug-in failed";
    PLUGIN_FINDING "J0482" "a plug-in reports a problem of the job";

    // ---- J05xx: targets and other input formats -------------------------------------------------
    NO_SUCH_TARGET "J0501" "unknown target";
    LOCK_FORM "J0502" "invalid jobc.lock";
    TARGET_POLICY "J0503" "the policy of the target forbids what the job requests";
    UNSIGNED "J0504" "an image lacks the signature that the policy of the target requires";
    OPENPAI_FIELD "J0521" "unknown field of an OpenPAI job";
    OPENPAI_VALUE "J0522" "invalid value in an OpenPAI job";
    OPENPAI_MISSING "J0523" "missing field of an OpenPAI job";
    OPENPAI_RENAMED "J0524" "a name of an OpenPAI job is changed";
    OPENPAI_PLACE "J0525" "a part of an OpenPAI job is only for OpenPAI";
    OPENPAI_TEMPLATE "J0526" "a template of an OpenPAI job has an unknown name";
    OPENPAI_REFERENCE "J0527" "unknown name in an OpenPAI job";
    OPENPAI_SAME_NAME "J0528" "duplicate name in an OpenPAI job";
    OPENPAI_IGNORED "J0529" "OpenPAI ignores a setting of the job";
    OPENPAI_SECRET "J0530" "the value of a secret is in an OpenPAI job";
    OPENPAI_THRESHOLD "J0531" "a threshold of an OpenPAI job that can never be reached";
    GPU_ALL_NONE "J0540" "all GPUs of a host that has none";
    OPENPAI_CODE "J0550" "nothing copies the code of an OpenPAI job into its tasks";
    OPENPAI_MOUNT "J0551" "a command of an OpenPAI job needs a capability that only OpenPAI gives";

    // ---- J06xx: a user's own Dockerfile ---------------------------------------------------------
    DOCKERFILE_SYNTAX "J0601" "invalid Dockerfile";
    DOCKERFILE_STAGE "J0602" "unknown stage in a Dockerfile";
    DOCKERFILE_FROM "J0603" "a copy from an unknown stage";
    DOCKERFILE_ARGUMENT "J0604" "undeclared argument of a Dockerfile";
    DOCKERFILE_VARIABLE "J0605" "the base image of a Dockerfile depends on a variable without a value";
    DOCKERFILE_TAG "J0606" "the base image of a Dockerfile has no fixed version";
    DOCKERFILE_SOURCE "J0607" "a Dockerfile copies a missing file";
    DOCKERFILE_OUTSIDE "J0608" "a Dockerfile copies from outside its context";
    DOCKERFILE_ADD "J0609" "a Dockerfile adds a file that may change";
    DOCKERFILE_SECRET "J0610" "a Dockerfile keeps a secret in the image";
    DOCKERFILE_EXEC "J0611" "a command in brackets is one string";
    DOCKERFILE_UNSUPPORTED "J0612" "the builder of jobc does not support an instruction";
    DOCKERFILE_UNDEFINED "J0613" "a variable of a Dockerfile has no value";
    DOCKERFILE_DEFAULT "J0614" "`FROM` names no image without a build argument";
    DOCKERFILE_STAGE_CASE "J0615" "a stage name has upper-case letters";
    DOCKERFILE_STAGE_NAME "J0616" "a duplicate or reserved stage name";
    DOCKERFILE_KEYWORD_CASE "J0617" "keywords of a Dockerfile differ in case";
    DOCKERFILE_SHELL_FORM "J0618" "`CMD` or `ENTRYPOINT` runs in a shell";
    DOCKERFILE_KEY_VALUE "J0619" "`ENV` or `LABEL` without an equals sign";
    DOCKERFILE_MAINTAINER "J0620" "`MAINTAINER` is deprecated";
    DOCKERFILE_REPLACED "J0621" "an instruction without effect, because a later one replaces it";
    DOCKERFILE_WORKDIR "J0622" "a relative `WORKDIR` on an unknown directory";
    DOCKERFILE_IGNORED "J0623" "a Dockerfile copies a file that `.dockerignore` excludes";
    DOCKERFILE_PLATFORM "J0624" "`FROM --platform` with a fixed or redundant platform";
    DOCKERFILE_EXPOSE "J0625" "`EXPOSE` in an unusual format";
    DOCKERFILE_LAYOUT "J0626" "an empty line or a comment that is easily misread";

    // ---- J063x: files of other tools ------------------------------------------------------------
    IMPORT_REFUSED "J0630" "a part of another tool's file has no counterpart in a job file";
    IMPORT_VALUE "J0631" "an invalid part of another tool's file";
    IMPORT_CHANGED "J0632" "a part of another tool's file means something else in a job";
    IMPORT_DROPPED "J0633" "parts of another tool's file that need no field";
    IMPORT_TARGET "J0634" "parts of another tool's file are settings of a cluster";
    IMPORT_IGNORED "J0635" "a line without effect in another tool's file";
    IMPORT_SEVERAL "J0636" "a file of another tool with several jobs";
    IMPORT_WITH "J0637" "another file is read with a file of another tool";

    // ---- J0638: queues, times and notices -------------------------------------------------------
    UNKNOWN_PRIORITY "J0638" "the target has no priority of that name";
    START_TIME "J0639" "`after` is not a time or duration";
    NOTICE "J0640" "a receiver of `notify` is not an address";
    IDLE_WITHOUT_GPUS "J0641" "`idle` of a job without GPUs";
    SCHEDULE "J0642" "`cron` of `schedule` is invalid";
}
